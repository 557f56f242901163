"""Distributions over atoms against hand-worked numbers and the algorithm of the paper."""

from __future__ import annotations

from math import ceil, floor, log

import pytest
import torch
from torch import Tensor

from operant.ops.atoms import cross_entropy, kl, mean, project, support

LOW, HIGH = -2.0, 4.0


def slow_projection(probability: Tensor, value: Tensor) -> Tensor:
    """Algorithm 1 of arXiv:1707.06887 for one distribution; a value on an atom is that atom's."""
    atoms = len(probability)
    found = torch.zeros_like(probability)
    for p, v in zip(probability.tolist(), value.tolist(), strict=True):
        place = (min(max(v, LOW), HIGH) - LOW) / ((HIGH - LOW) / (atoms - 1))
        below, above = floor(place), ceil(place)
        if below == above:
            found[below] += p
        else:
            found[below] += p * (above - place)
            found[above] += p * (place - below)
    return found


def some(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def test_atoms_are_equidistant() -> None:
    assert support(LOW, HIGH, torch.zeros(5, 4)).tolist() == [-2, 0, 2, 4]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0, [0, 1, 0, 0]),  # on an atom
        (0.5, [0, 0.75, 0.25, 0]),
        (3.0, [0, 0, 0.5, 0.5]),
        (LOW, [1, 0, 0, 0]),
        (HIGH, [0, 0, 0, 1]),
        (-1e6, [1, 0, 0, 0]),  # beyond the range: all of it at the border
        (1e6, [0, 0, 0, 1]),
    ],
)
def test_a_value_gives_its_probability_to_the_atoms_beside_it(
    value: float, expected: list[float]
) -> None:
    certain = torch.tensor([0.0, 1.0, 0.0, 0.0])
    found = project(certain, torch.full((4,), value), LOW, HIGH)
    assert found.tolist() == pytest.approx(expected)


@pytest.mark.parametrize("atoms", [2, 4, 51])
def test_the_projection_is_that_of_the_paper(atoms: int) -> None:
    probability, value = some(3, 5, atoms).softmax(-1), 4 * some(3, 5, atoms, seed=1)
    value[0, 0] = support(LOW, HIGH, value)  # some lie on atoms
    found = project(probability, value, LOW, HIGH)
    pairs = zip(probability.view(-1, atoms), value.view(-1, atoms), strict=True)
    expected = torch.stack([slow_projection(p, v) for p, v in pairs]).view(3, 5, atoms)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(found.sum(-1), torch.ones(3, 5, dtype=torch.float64))


def test_a_projection_within_the_range_keeps_the_mean() -> None:
    probability, value = some(7, 9).softmax(-1), 3 * some(7, 9, seed=1).tanh() + 1
    found = project(probability, value, LOW, HIGH)
    torch.testing.assert_close(mean(found.log(), LOW, HIGH), (probability * value).sum(-1))


def test_the_mean_of_a_distribution() -> None:
    assert mean(torch.tensor([0.5, 0.0, 0.25, 0.25]).log(), LOW, HIGH).item() == 0.5


def test_cross_entropy_and_divergence_by_hand() -> None:
    target, guess = torch.tensor([[0.5, 0.5], [0.0, 1.0]]), torch.tensor([[0.25, 0.75], [0.5, 0.5]])
    entropy = log(2)
    expected = [-(log(0.25) + log(0.75)) / 2, log(2)]
    assert cross_entropy(target, guess.log()).tolist() == pytest.approx(expected)
    assert kl(target, guess.log()).tolist() == pytest.approx([expected[0] - entropy, log(2)])
    assert kl(guess, guess.log()).tolist() == pytest.approx([0, 0], abs=1e-6)


def test_the_slope_of_cross_entropy_pulls_logits_to_the_target() -> None:
    logits = some(3, 4).requires_grad_()
    target = some(3, 4, seed=1).softmax(-1)
    cross_entropy(target, logits.log_softmax(-1)).sum().backward()
    torch.testing.assert_close(logits.grad, logits.detach().softmax(-1) - target)
