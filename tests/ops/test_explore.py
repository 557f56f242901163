"""Random actions: how often, over what, and never what is forbidden."""

from __future__ import annotations

import pytest
import torch
from gymnasium import spaces as gs
from torch import Generator

from operant.core.spaces import Space
from operant.ops.deterministic import smoothed, squashed
from operant.ops.explore import (
    clipped_normal_noise,
    epsilon_greedy,
    normal_noise,
    ornstein_uhlenbeck,
    uniform,
    uniform_noise,
)

SPACES: dict[str, Space] = {
    "move": gs.Discrete(4),
    "arms": gs.MultiDiscrete([2, 3]),
    "aim": gs.Box(-1, 1, (2,)),
}
ROWS = 8000


def test_a_coin_is_tossed_once_a_row_for_all_parts() -> None:
    chosen = {"move": torch.zeros(ROWS).long(), "arms": torch.zeros(ROWS, 2).long()}
    other = {"move": torch.ones(ROWS).long(), "arms": torch.ones(ROWS, 2).long()}
    action = epsilon_greedy(chosen, other, 0.3, Generator())
    assert action["move"].float().mean().item() == pytest.approx(0.3, abs=0.02)
    assert torch.equal(action["arms"], action["move"][:, None].expand(ROWS, 2))


@pytest.mark.parametrize(("epsilon", "expected"), [(0.0, 0), (1.0, ROWS)])
def test_the_ends_of_epsilon_never_and_always_explore(epsilon: float, expected: int) -> None:
    chosen, other = {"move": torch.zeros(ROWS)}, {"move": torch.ones(ROWS)}
    assert epsilon_greedy(chosen, other, epsilon, Generator())["move"].sum() == expected


def test_each_row_may_have_an_epsilon_of_its_own() -> None:
    chosen, other = {"move": torch.zeros(3, 1)}, {"move": torch.ones(3, 1)}
    action = epsilon_greedy(chosen, other, torch.tensor([0.0, 1.0, 0.0]), Generator())
    assert action["move"].flatten().tolist() == [0, 1, 0]


def test_every_action_is_equally_frequent() -> None:
    action = uniform(SPACES, ROWS, {}, Generator(), "cpu")
    for part, n in ((action["move"], 4), (action["arms"][:, 0], 2), (action["arms"][:, 1], 3)):
        frequency = torch.bincount(part, minlength=n) / ROWS
        assert frequency.tolist() == pytest.approx([1 / n] * n, abs=0.02)


def test_a_box_is_covered_from_minus_one_to_one() -> None:
    aim = uniform(SPACES, ROWS, {}, Generator(), "cpu")["aim"]
    assert aim.shape == (ROWS, 2)
    assert (aim.min().item(), aim.max().item()) == pytest.approx((-1, 1), abs=0.01)
    assert aim.mean().item() == pytest.approx(0, abs=0.02)


def test_forbidden_actions_are_never_drawn() -> None:
    mask = torch.tensor([False, True, False, True]).expand(ROWS, 4)
    move = uniform(SPACES, ROWS, {"move": mask}, Generator(), "cpu")["move"]
    assert (torch.bincount(move, minlength=4) / ROWS).tolist() == pytest.approx(
        [0, 0.5, 0, 0.5], abs=0.02
    )
    assert set(move.tolist()) == {1, 3}


def test_a_multi_discrete_action_of_one_part_keeps_its_axis() -> None:
    space: dict[str, Space] = {"one": gs.MultiDiscrete([3])}
    other = uniform(space, 5, {}, Generator(), "cpu")
    action = epsilon_greedy({"one": torch.zeros(5).long()}, other, 0.0, Generator())
    assert action["one"].shape == (5, 1)


def test_normal_noise_has_the_deviation_of_each_dimension() -> None:
    noise = normal_noise((ROWS, 2), torch.tensor([0.5, 2.0]), Generator())
    assert noise.std(0).tolist() == pytest.approx([0.5, 2.0], rel=0.03)
    assert noise.abs().max().item() > 4  # not uniform


def test_clipped_noise_never_passes_its_clip() -> None:
    noise = clipped_normal_noise((ROWS,), 1.0, 0.5, Generator())
    assert (noise.min().item(), noise.max().item()) == (-0.5, 0.5)
    inside = noise[noise.abs() < 0.5]
    assert len(inside) / ROWS == pytest.approx(0.383, abs=0.02)  # of a normal within half of one


def test_uniform_noise_is_even_between_minus_its_scale_and_its_scale() -> None:
    noise = uniform_noise((ROWS, 2), torch.tensor([0.5, 2.0]), Generator())
    assert noise.amax(0).tolist() == pytest.approx([0.5, 2.0], rel=0.01)
    assert noise.std(0).tolist() == pytest.approx([0.5 / 3**0.5, 2.0 / 3**0.5], rel=0.03)


def test_ornstein_uhlenbeck_noise_returns_to_zero_by_theta() -> None:
    x = torch.tensor([1.0, -2.0])
    assert ornstein_uhlenbeck(x, 0.0, 0.25, Generator()).tolist() == [0.75, -1.5]
    drawn = normal_noise((2,), 0.3, Generator().manual_seed(4))
    found = ornstein_uhlenbeck(x, 0.3, 0.25, Generator().manual_seed(4))
    torch.testing.assert_close(found, 0.75 * x + drawn)


def test_a_deterministic_action_is_the_tanh_of_the_output_in_its_shape() -> None:
    out = {
        "policy.grid": torch.tensor([[0.0, 1.0, -1.0, 9.0]]),
        "policy.lone": torch.tensor([[2.0]]),
    }
    action = squashed(out, {"grid": (2, 2), "lone": ()})
    assert action["grid"].flatten().tolist() == pytest.approx(
        [0.0, 0.76159, -0.76159, 1.0], abs=1e-4
    )
    assert (action["grid"].shape, action["lone"].shape) == ((1, 2, 2), (1,))


def test_a_smoothed_action_stays_near_and_within_bounds() -> None:
    action = torch.tensor([0.0, 0.9]).expand(ROWS, 2)
    found = smoothed(action, 1.0, 0.5, Generator())
    assert found.amin(0).tolist() == pytest.approx([-0.5, 0.4])
    assert found.amax(0).tolist() == pytest.approx([0.5, 1.0])
