"""Natural-gradient steps against matrices that are written out."""

from __future__ import annotations

import math

import pytest
import torch
from gymnasium.spaces import Box, Discrete
from torch import Tensor

from operant.ops.distribution import distribution_for
from operant.ops.trust_region import (
    Judged,
    assign,
    conjugate_gradient,
    fisher_product,
    flatten,
    line_search,
    natural_step,
)

DOUBLE = torch.float64


def positive(size: int, seed: int) -> Tensor:
    """A symmetric matrix without directions of negative curvature."""
    root = torch.randn(size, size, generator=torch.Generator().manual_seed(seed), dtype=DOUBLE)
    return root @ root.T + 0.1 * torch.eye(size, dtype=DOUBLE)


def test_parameters_are_written_back_from_a_vector_in_their_own_order() -> None:
    parts = [torch.arange(6.0).reshape(2, 3), torch.tensor([7.0])]
    vector = flatten(parts)
    assert vector.tolist() == [0, 1, 2, 3, 4, 5, 7]
    assign(parts, vector + 1)
    assert parts[0].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert parts[1].tolist() == [8]


def test_the_fisher_product_of_two_logits_is_that_of_the_explicit_matrix() -> None:
    logits = torch.tensor([0.3, -0.5], dtype=DOUBLE, requires_grad=True)
    space = distribution_for({"a": Discrete(2)})
    kl = space.kl({"policy.a": logits.detach()}, {"policy.a": logits}, {})
    p = logits.detach().softmax(0)
    fisher = torch.diag(p) - p[:, None] * p[None, :]
    product = fisher_product(kl, [logits], damping=0.0)
    for vector in torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, -3.0]], dtype=DOUBLE):
        torch.testing.assert_close(product(vector), fisher @ vector)


def test_the_fisher_matrix_of_a_gaussian_has_both_means_and_deviations() -> None:
    mean = torch.tensor([0.4, -1.0], dtype=DOUBLE, requires_grad=True)
    log_std = torch.tensor([0.5, -0.7], dtype=DOUBLE, requires_grad=True)
    normal = distribution_for({"a": Box(-1, 1, (2,))}, free_std=True)
    out = {"policy.a": mean, "log_std.a": log_std}
    kl = normal.kl({k: x.detach() for k, x in out.items()}, out, {})
    product = fisher_product(kl, [mean, log_std], damping=0.25)
    precision = (-2 * log_std.detach()).exp()
    expected = torch.cat((precision, torch.full((2,), 2.0, dtype=DOUBLE))) + 0.25
    torch.testing.assert_close(product(torch.ones(4, dtype=DOUBLE)), expected)


def test_a_parameter_that_the_policy_does_not_use_has_no_curvature() -> None:
    used, idle = (torch.ones(1, dtype=DOUBLE, requires_grad=True) for _ in range(2))
    product = fisher_product((3 * used**2).sum(), [used, idle], damping=0.1)
    assert product(torch.ones(2, dtype=DOUBLE)).tolist() == pytest.approx([6.1, 0.1])


@pytest.mark.parametrize("size", [1, 2, 5, 9])
def test_conjugate_gradients_solve_in_as_many_iterations_as_there_are_numbers(size: int) -> None:
    matrix = positive(size, seed=size)
    target = torch.linspace(-1, 2, size, dtype=DOUBLE)
    found = conjugate_gradient(lambda v: matrix @ v, target, size + 1, 1e-24)
    torch.testing.assert_close(found, torch.linalg.solve(matrix, target))


def test_conjugate_gradients_end_where_the_error_is_small_for_targets_of_any_size() -> None:
    matrix, calls = positive(4, seed=3), 0

    def product(vector: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        return matrix @ vector

    target = 1e-9 * torch.ones(4, dtype=DOUBLE)
    found = conjugate_gradient(product, target, 50)
    torch.testing.assert_close(matrix @ found, target, rtol=1e-4, atol=0)
    assert calls <= 6


def test_nothing_is_solved_for_a_zero_target() -> None:
    found = conjugate_gradient(lambda v: v / 0, torch.zeros(3), 10)
    assert found.tolist() == [0, 0, 0]


def test_a_natural_step_goes_along_the_solution_and_uses_up_the_divergence() -> None:
    matrix = positive(3, seed=1)
    gradient = torch.tensor([1.0, -2.0, 0.5], dtype=DOUBLE)
    step = natural_step(gradient, lambda v: matrix @ v, max_kl=0.02, iterations=20)
    direction = torch.linalg.solve(matrix, gradient)
    assert (0.5 * step @ matrix @ step).item() == pytest.approx(0.02)
    cosine = step @ direction / step.norm() / direction.norm()
    assert cosine.item() == pytest.approx(1)


def test_a_zero_gradient_gives_no_step() -> None:
    assert natural_step(torch.zeros(2), lambda v: v, 0.01, 10).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("max_kl", "expected"),
    [(9.0, 4.0), (1.0, 1.0), (0.3, 0.25), (0.05, None)],
    ids=["all of it", "half", "a quarter", "never"],
)
def test_a_step_is_halved_until_its_divergence_is_allowed(
    max_kl: float, expected: float | None
) -> None:
    tried: list[float] = []

    def judge(step: Tensor) -> Judged:
        tried.append(step.item())
        return Judged(gain=1.0, kl=step.item() ** 2)

    found = line_search(judge, torch.tensor(2.0), max_kl, backtracks=3, shrink=0.5)
    assert (None if found is None else found.kl) == expected
    assert tried == [2.0, 1.0, 0.5][: len(tried)]
    assert len(tried) == 3 if expected is None else math.isclose(tried[-1] ** 2, expected)


@pytest.mark.parametrize("gain", [0.0, -1.0, math.nan])
def test_a_step_that_does_not_gain_is_not_taken(gain: float) -> None:
    assert line_search(lambda _: Judged(gain, 0.0), torch.ones(2), 0.01, 4, 0.5) is None


def test_a_divergence_that_is_not_a_number_is_not_allowed() -> None:
    judged = iter([Judged(1.0, math.nan), Judged(1.0, 0.005)])
    found = line_search(lambda _: next(judged), torch.ones(2), 0.01, 4, 0.5)
    assert found == Judged(1.0, 0.005)
