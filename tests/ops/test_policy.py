"""Policy losses against hand-worked numbers."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from operant.ops import policy

CLIP = 0.2
NAN = math.nan


def log(*ratios: float) -> Tensor:
    return torch.tensor(ratios).log()


def test_a_policy_gradient_raises_what_was_better_than_expected() -> None:
    log_prob = torch.tensor([-1.0, -2.0], requires_grad=True)
    advantage = torch.tensor([3.0, -0.5], requires_grad=True)
    loss = policy.policy_gradient(log_prob, advantage)
    loss.sum().backward()
    assert loss.tolist() == [3.0, -1.0]
    assert log_prob.grad is not None
    assert log_prob.grad.tolist() == [-3.0, 0.5]
    assert advantage.grad is None


@pytest.mark.parametrize(
    ("ratio", "advantage", "gain", "slope"),
    [
        (1.1, 2.0, 2.2, 2.0),  # inside: as it is
        (1.5, 2.0, 2.4, 0.0),  # good and far enough: no more to gain
        (0.5, 2.0, 1.0, 2.0),  # good but less likely than before: pulled back
        (0.5, -2.0, -1.6, 0.0),  # bad and far enough
        (1.5, -2.0, -3.0, -2.0),  # bad but more likely than before: pulled back
    ],
)
def test_the_clipped_surrogate(ratio: float, advantage: float, gain: float, slope: float) -> None:
    log_ratio = torch.tensor(math.log(ratio), requires_grad=True)
    found = policy.clipped_surrogate(log_ratio, torch.tensor(advantage), CLIP)
    (gradient,) = torch.autograd.grad(found, log_ratio)
    assert found.item() == pytest.approx(gain)
    assert gradient.item() == pytest.approx(slope * ratio)


def test_the_kl_estimate_is_zero_at_rest_and_never_below() -> None:
    estimate = policy.kl_estimate(log(1.0, 2.0, 0.5))
    assert estimate.tolist() == pytest.approx([0, 1 - math.log(2), -0.5 + math.log(2)])


def test_the_kl_estimate_has_the_kl_divergence_as_its_mean() -> None:
    old, new = torch.tensor([0.2, 0.3, 0.5]), torch.tensor([0.4, 0.4, 0.2])
    expected = (old * (old / new).log()).sum()
    torch.testing.assert_close((old * policy.kl_estimate((new / old).log())).sum(), expected)


def test_the_clip_fraction_counts_ratios_outside_on_either_side() -> None:
    outside = policy.clip_fraction(log(1.0, 1.19, 1.21, 0.81, 0.79), CLIP)
    assert outside.tolist() == [0, 0, 1, 0, 1]


def test_explained_variance_is_one_for_the_truth_and_zero_for_a_constant() -> None:
    target = torch.tensor([1.0, 2.0, 3.0, 6.0])
    assert policy.explained_variance(target + 5, target).item() == pytest.approx(1)
    assert policy.explained_variance(torch.ones(4), target).item() == pytest.approx(0)
    assert policy.explained_variance(-target, target).item() == pytest.approx(-3)
    assert policy.explained_variance(target, torch.ones(4)).item() == 0


def test_explained_variance_leaves_out_what_is_not_valid() -> None:
    target, value = torch.tensor([1.0, 2.0, 3.0, NAN]), torch.tensor([1.0, 2.0, 3.0, 9.0])
    valid = torch.tensor([True, True, True, False])
    assert policy.explained_variance(value, target, valid).item() == pytest.approx(1)


def test_a_masked_mean_leaves_out_what_is_not_valid_whatever_it_holds() -> None:
    x = torch.tensor([[1.0, NAN], [3.0, math.inf]], requires_grad=True)
    mean = policy.masked_mean(x, torch.tensor([[True, False], [True, False]]))
    mean.backward()
    assert mean.item() == 2
    assert x.grad is not None
    assert x.grad.tolist() == [[0.5, 0], [0.5, 0]]


def test_a_masked_mean_of_nothing_is_zero_and_of_everything_the_mean() -> None:
    x = torch.tensor([1.0, 5.0])
    assert policy.masked_mean(x, torch.tensor([False, False])).item() == 0
    assert policy.masked_mean(x, None).item() == 3


def test_standardize_looks_at_valid_entries_only() -> None:
    x = torch.tensor([1.0, 1000.0, 3.0, NAN])
    valid = torch.tensor([True, False, True, False])
    assert policy.standardize(x, valid).tolist() == pytest.approx([-1, 0, 1, 0])


def test_standardize_gives_mean_zero_and_deviation_one() -> None:
    x = policy.standardize(torch.tensor([[3.0, 4.0], [8.0, -7.0]]), None)
    assert x.mean().item() == pytest.approx(0, abs=1e-6)
    assert x.std(unbiased=False).item() == pytest.approx(1)


def test_standardize_of_equal_or_single_entries_is_zero() -> None:
    assert policy.standardize(torch.full((3,), 7.0), None).tolist() == [0, 0, 0]
    assert policy.standardize(torch.tensor([7.0, 8.0]), torch.tensor([True, False])).tolist() == [
        0,
        0,
    ]


def policies(rows: int, count: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Log-probabilities of three unlike policies."""
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(3, rows, count, generator=generator, dtype=torch.float64)
    one, two, three = logits.log_softmax(-1)
    return one, two, three


@pytest.mark.parametrize("bound", [0.5, 1.0, 10.0])
def test_a_truncated_gradient_is_that_of_the_paper_action_by_action(bound: float) -> None:
    now, before, _ = policies(40, 3)
    generator = torch.Generator().manual_seed(1)
    action = torch.randint(3, (40,), generator=generator)
    advantage, q = torch.randn(40, dtype=torch.float64), torch.randn(40, 3, dtype=torch.float64)
    found = policy.truncated_gradient(now, before, action, advantage, q, bound)
    expected = torch.zeros_like(found)
    for i in range(40):
        for a in range(3):
            chance, ratio = float(now[i, a].exp()), float((now[i, a] - before[i, a]).exp())
            if a == action[i]:
                expected[i, a] += min(bound, ratio) * float(advantage[i]) / chance
            expected[i, a] += max(0.0, 1 - bound / ratio) * float(q[i, a])
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("bound", [0.3, 1.0, 4.0])
def test_what_truncation_cuts_off_is_corrected_whoever_acted(bound: float) -> None:
    now, before, _ = policies(20, 4)
    better = torch.randn(20, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    expected = torch.zeros_like(better)
    for a in range(4):  # what acting by `before` gives on average
        action = torch.full((20,), a)
        found = policy.truncated_gradient(now, before, action, better[:, a], better, bound)
        expected += before[:, a, None].exp() * found
    torch.testing.assert_close(expected, better)


def test_no_gradient_passes_where_an_action_has_no_probability() -> None:
    lowest = torch.finfo(torch.float32).min / 2
    now = torch.tensor([[0.0, 0.0, lowest], [0.0, -300.0, -1.0]]).log_softmax(-1)
    before = torch.tensor([[0.0, 1.0, lowest], [0.0, 0.0, 0.0]]).log_softmax(-1)
    found = policy.truncated_gradient(
        now, before, torch.tensor([0, 1]), torch.ones(2), torch.full((2, 3), 5.0), 0.5
    )
    held = policy.trust_region(found, now, before, 0.01)
    assert [x.item() for x in (found[0, 2], found[1, 1], held[0, 2], held[1, 1])] == [0.0] * 4
    assert bool(torch.isfinite(held).all())


@pytest.mark.parametrize("bound", [1e-3, 0.1, 1.0, 10.0])
def test_in_the_trust_region_the_divergence_grows_no_faster_than_its_bound(bound: float) -> None:
    now, _, average = policies(500, 5)
    gradient = 9 * torch.randn(
        500, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(3)
    )
    found = policy.trust_region(gradient, now, average, bound)
    probability = now.exp().requires_grad_()
    (average.exp() * (average - probability.log())).sum().backward()
    assert probability.grad is not None
    before, after = (probability.grad * x for x in (gradient, found))
    assert after.sum(-1).max().item() <= bound + 1e-8  # of numbers in the thousands
    free = before.sum(-1) <= bound
    assert 0 < int(free.sum()) < 500
    torch.testing.assert_close(found[free], gradient[free])
    torch.testing.assert_close(after.sum(-1)[~free], torch.full((500,), bound).double()[~free])


def test_nothing_else_in_the_trust_region_is_as_near() -> None:
    now, _, average = policies(1, 3, seed=4)
    gradient = torch.tensor([[-3.0, -2.0, -4.0]], dtype=torch.float64)
    found = policy.trust_region(gradient, now, average, 1.0)
    generator = torch.Generator().manual_seed(5)
    others = found + 0.3 * torch.randn(5000, 3, dtype=torch.float64, generator=generator)
    slope = (-(average - now).exp() * others).sum(-1)
    distance = (others - gradient).norm(dim=-1)
    assert int((slope <= 1.0).sum()) > 1000
    assert distance[slope <= 1.0].min() > (found - gradient).norm()
