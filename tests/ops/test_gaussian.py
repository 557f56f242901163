"""Continuous distributions against torch.distributions."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Generator, Tensor
from torch import distributions as reference

from operant.core.errors import UsageError
from operant.ops.gaussian import Gaussian, standard_normal
from operant.ops.reparameterized import SquashedGaussian, rsample_part

Kind = type[Gaussian]
BOTH = pytest.mark.parametrize("kind", [Gaussian, SquashedGaussian])


def some_params(*shape: int, seed: int = 0) -> Tensor:
    return 0.7 * torch.randn(*shape, generator=Generator().manual_seed(seed))


def pathwise(part: Gaussian, params: Tensor) -> tuple[Tensor, Tensor]:
    """A draw with a gradient, and its log-density."""
    noise = standard_normal((*params.shape[:-1], part.params // 2), Generator())
    return rsample_part(part, params, noise)


def normal(params: Tensor) -> reference.Distribution:
    mean, log_std = params.chunk(2, -1)
    return reference.Independent(reference.Normal(mean, log_std.exp()), 1)


def squashed(params: Tensor) -> reference.TransformedDistribution:
    transform = reference.TanhTransform(cache_size=1)
    return reference.TransformedDistribution(normal(params), [transform])


def test_a_gaussian_agrees_with_torch() -> None:
    p, q = some_params(4, 6), some_params(4, 6, seed=1)
    action, three = some_params(4, 3, seed=2), Gaussian((3,))
    torch.testing.assert_close(three.log_prob(p, action, None), normal(p).log_prob(action))
    torch.testing.assert_close(three.entropy(p, None), normal(p).entropy())
    expected = reference.kl_divergence(normal(p), normal(q))
    torch.testing.assert_close(three.kl(p, q, None), expected)


def test_a_squashed_gaussian_agrees_with_torch() -> None:
    p, q = some_params(4, 6), some_params(4, 6, seed=1)
    action, three = some_params(4, 3, seed=2).tanh(), SquashedGaussian((3,))
    torch.testing.assert_close(three.log_prob(p, action, None), squashed(p).log_prob(action))
    torch.testing.assert_close(three.kl(p, q, None), Gaussian((3,)).kl(p, q, None))


def test_the_standard_normal_has_its_textbook_density_and_entropy() -> None:
    one, params = Gaussian((1,)), torch.zeros(2)
    assert one.log_prob(params, torch.ones(1), None).item() == pytest.approx(-0.5 - 0.9189385)
    assert one.entropy(params, None).item() == pytest.approx(0.5 * math.log(2 * math.pi * math.e))


def test_the_density_of_a_squashed_gaussian_integrates_to_one() -> None:
    x = torch.linspace(-1, 1, 20_001, dtype=torch.float64)[1:-1, None]
    params = torch.tensor([0.3, -0.5], dtype=torch.float64).expand(len(x), 2)
    density = SquashedGaussian((1,)).log_prob(params, x, None).exp()
    assert torch.trapezoid(density, x[:, 0]).item() == pytest.approx(1, abs=1e-4)


@BOTH
def test_draws_have_the_mean_and_deviation_asked_for(kind: Kind) -> None:
    params = torch.tensor([0.5, -0.2, -1.0, -0.3]).expand(20_000, 4)
    drawn = kind((2,)).sample(params, None, Generator())
    drawn = drawn.atanh() if kind is SquashedGaussian else drawn
    torch.testing.assert_close(drawn.mean(0), params[0, :2], atol=0.03, rtol=0)
    torch.testing.assert_close(drawn.std(0), params[0, 2:].exp(), atol=0.03, rtol=0)


@BOTH
def test_a_draw_comes_with_its_own_log_density(kind: Kind) -> None:
    params = some_params(5, 4)
    action, log_prob = pathwise(kind((2,)), params)
    torch.testing.assert_close(log_prob, kind((2,)).log_prob(params, action, None))
    assert torch.equal(action, kind((2,)).sample(params, None, Generator()))


def test_a_plain_draw_carries_no_gradient_and_a_pathwise_one_does() -> None:
    params, one = torch.zeros(1, 2, requires_grad=True), SquashedGaussian((1,))
    assert not one.sample(params, None, Generator()).requires_grad
    action, _ = pathwise(one, params)
    (gradient,) = torch.autograd.grad(action.sum(), params)
    x = action.detach().atanh()
    slope = 1 - action.item() ** 2
    assert gradient[0].tolist() == pytest.approx([slope, slope * x.item()], rel=1e-4)


def test_the_pathwise_gradient_of_a_squashed_log_density_is_that_of_torch() -> None:
    params = some_params(6, 4).requires_grad_()
    action, log_prob = pathwise(SquashedGaussian((2,)), params)
    (found,) = torch.autograd.grad(log_prob.sum(), params, retain_graph=True)
    again = squashed(params).log_prob(action)
    (expected,) = torch.autograd.grad(again.sum(), params)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-3)


@BOTH
@pytest.mark.parametrize("shape", [(), (1,), (4,), (2, 3)])
def test_actions_have_the_shape_of_their_space(kind: Kind, shape: tuple[int, ...]) -> None:
    part = kind(shape)
    params = some_params(7, 5, part.params)
    action = part.sample(params, None, Generator())
    assert action.shape == part.mode(params, None).shape == (7, 5, *shape)
    flat = kind((part.params // 2,)).log_prob(params, action.reshape(7, 5, -1), None)
    torch.testing.assert_close(part.log_prob(params, action, None), flat)


@pytest.mark.parametrize("mean", [30.0, -30.0])
def test_far_out_a_squashed_action_is_inside_and_its_log_density_finite(mean: float) -> None:
    params, one = torch.tensor([mean, 0.0], requires_grad=True), SquashedGaussian((1,))
    action, log_prob = pathwise(one, params)
    again = one.log_prob(params, torch.tensor([math.copysign(1, mean)]), None)
    assert 0.999 < action.abs().item() < 1
    (gradient,) = torch.autograd.grad(log_prob + again, params)
    assert log_prob.isfinite()
    assert gradient.isfinite().all()


def test_log_deviations_count_only_between_minus_twenty_and_two() -> None:
    one = Gaussian((1,))
    low, high = torch.tensor([0.0, -99.0]), torch.tensor([0.0, 99.0])
    difference = one.entropy(high, None) - one.entropy(low, None)
    assert difference.item() == pytest.approx(22)


def test_the_mode_is_the_mean() -> None:
    params = torch.tensor([0.5, -0.5, 1.0, 1.0])
    assert Gaussian((2,)).mode(params, None).tolist() == [0.5, -0.5]
    squash = SquashedGaussian((2,)).mode(params, None)
    assert squash.tolist() == pytest.approx([math.tanh(0.5), -math.tanh(0.5)])


def test_the_entropy_of_a_squashed_gaussian_is_refused() -> None:
    with pytest.raises(UsageError, match="no closed form; use the mean of -log_prob"):
        SquashedGaussian((1,)).entropy(torch.zeros(2), None)
