"""Value losses and additive Q-values against hand-worked numbers and plain loops."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from operant.ops.value import dueling, greedy, huber, hysteretic, max_q, q_of, squared

CHOICES = {"move": [3], "arms": [2, 3], "keys": [2, 2]}


def some_values(*leading: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    sizes = {name: sum(counts) for name, counts in CHOICES.items()}
    return {n: torch.randn(*leading, size, generator=generator) for n, size in sizes.items()}


def some_masks() -> dict[str, Tensor]:
    keys = torch.tensor([True, False, True, True])
    return {"arms": torch.tensor([False, True, True, False, True]).expand(4, 5), "keys": keys}


def q_by_hand(
    q: dict[str, Tensor], move: int, arms: tuple[int, int], keys: tuple[int, int]
) -> float:
    total = q["move"][move] + q["arms"][arms[0]] + q["arms"][2 + arms[1]]
    return float(total + q["keys"][keys[0]] + q["keys"][2 + keys[1]])


def test_half_the_square_has_the_error_as_its_slope() -> None:
    error = torch.tensor([3.0], requires_grad=True)
    loss = squared(error)
    loss.backward()
    assert (loss.item(), error.grad) == (4.5, torch.tensor([3.0]))


@pytest.mark.parametrize(
    ("error", "expected", "slope"),
    [(0.0, 0.0, 0.0), (-1.0, 0.5, -1.0), (2.0, 2.0, 2.0), (-5.0, 8.0, -2.0)],
)
def test_huber_is_square_then_straight(error: float, expected: float, slope: float) -> None:
    x = torch.tensor(error, requires_grad=True)
    loss = huber(x, delta=2.0)
    (gradient,) = torch.autograd.grad(loss, x)
    assert (loss.item(), gradient.item()) == (expected, slope)


def test_huber_is_that_of_torch() -> None:
    error = torch.linspace(-4, 4, 101)
    expected = F.huber_loss(error, torch.zeros(101), reduction="none", delta=0.7)
    torch.testing.assert_close(huber(error, 0.7), expected)


def test_hysteretic_targets_move_by_a_share_that_depends_on_the_direction() -> None:
    guess, target = torch.tensor([1.0, 1.0, 2.0]), torch.tensor([3.0, -3.0, 2.0])
    assert hysteretic(guess, target, 0.5, 0.25).tolist() == [2.0, 0.0, 2.0]


def test_hysteretic_rates_of_one_and_zero_are_exact() -> None:
    guess, target = torch.randn(2, 1000, generator=torch.Generator().manual_seed(0)).unbind()
    assert torch.equal(hysteretic(guess, target, 1.0, 1.0), target)
    assert torch.equal(hysteretic(guess, target, 1.0, 0.0), torch.maximum(guess, target))


def test_the_value_of_an_action_is_the_sum_of_its_parts() -> None:
    q = {"move": torch.tensor([[1.0, 2.0, 4.0]]), "arms": torch.tensor([[8.0, 16, 32, 64, 128]])}
    action = {"move": torch.tensor([1]), "arms": torch.tensor([[0, 2]])}
    assert q_of(q, action, CHOICES).tolist() == [2 + 8 + 128]


def test_the_value_of_an_action_has_the_leading_axes_of_the_record() -> None:
    q = some_values(5, 4)
    action = greedy(q, CHOICES, {})
    assert {name: x.shape[2:] for name, x in action.items()} == {
        "move": (),
        "arms": (2,),
        "keys": (2,),
    }
    value = q_of(q, action, CHOICES)
    assert value.shape == (5, 4)
    torch.testing.assert_close(value, max_q(q, CHOICES, {}))


def test_the_greedy_action_is_the_best_of_all_allowed_ones() -> None:
    q, masks = some_values(4), some_masks()
    best = max_q(q, CHOICES, masks)
    torch.testing.assert_close(q_of(q, greedy(q, CHOICES, masks), CHOICES), best)
    for row in range(4):
        at = {name: x[row] for name, x in q.items()}
        arms, keys = itertools.product([1], [0, 2]), itertools.product([0], [0, 1])
        found = [q_by_hand(at, *x) for x in itertools.product(range(3), arms, keys)]
        assert best[row].item() == pytest.approx(max(found))


def test_double_dqn_takes_the_online_choice_at_the_target_value() -> None:
    online, target = (
        {"move": torch.tensor([[1.0, 5.0, 2.0]])},
        {"move": torch.tensor([[9.0, 3.0, 7.0]])},
    )
    assert q_of(target, greedy(online, CHOICES, {}), CHOICES).item() == 3


def test_where_a_mask_allows_nothing_the_value_stays_that_of_the_best_action() -> None:
    q, nothing = {"arms": torch.tensor([[1.0, 2, 3, 4, 5]])}, {"arms": torch.zeros(1, 5).bool()}
    assert max_q(q, CHOICES, nothing).item() == 2 + 5
    assert greedy(q, CHOICES, nothing)["arms"].tolist() == [[1, 2]]


def test_a_duelling_sum_holds_the_state_value_once_and_centred_advantages() -> None:
    advantage = {"move": torch.tensor([[0.0, 3.0, 6.0]]), "arms": torch.tensor([[1.0, 3, 0, 0, 6]])}
    q = dueling(advantage, torch.tensor([[10.0]]), CHOICES)
    action = {"move": torch.tensor([2]), "arms": torch.tensor([[0, 2]])}
    assert q_of(q, action, CHOICES).item() == pytest.approx(10 + (6 - 3) + (1 - 2) + (6 - 2))


def test_duelling_advantages_are_centred_over_allowed_actions() -> None:
    mask = {"move": torch.tensor([[True, False, True]])}
    q = dueling({"move": torch.tensor([[0.0, 99.0, 6.0]])}, torch.tensor([[10.0]]), CHOICES, mask)
    assert q["move"][0, [0, 2]].tolist() == [7, 13]


@pytest.mark.parametrize("masks", [{}, some_masks()])
def test_the_mean_over_allowed_duelling_values_is_the_state_value(masks: dict[str, Tensor]) -> None:
    state_value = torch.arange(4.0)[:, None]
    q = dueling(some_values(4), state_value, CHOICES, masks)
    moves, arms = range(3), ([1], [0, 2]) if masks else (range(2), range(3))
    keys = ([0], range(2)) if masks else (range(2), range(2))
    every = list(itertools.product(moves, itertools.product(*arms), itertools.product(*keys)))
    for row in range(4):
        at = {name: x[row] for name, x in q.items()}
        mean = sum(q_by_hand(at, *x) for x in every) / len(every)
        assert mean == pytest.approx(row, abs=1e-5)
