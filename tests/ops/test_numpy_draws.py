"""Draws in NumPy are those of the distributions themselves."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from operant.core.spaces import Space
from operant.ops.distribution import distribution_for
from operant.ops.reparameterized import SquashedGaussian

SPACES: dict[str, Space] = {"go": Discrete(3), "push": Box(-1, 1, (2,))}
DISTRIBUTION = distribution_for(SPACES)


def params(rows: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    shapes = DISTRIBUTION.outputs.items()
    return {name: 2 * torch.randn(rows, *shape, generator=generator) for name, shape in shapes}


def test_actions_are_those_that_the_distribution_draws() -> None:
    ours, theirs = (torch.Generator().manual_seed(5) for _ in range(2))
    given = params(50)
    arrays = {k: x.numpy() for k, x in given.items()}
    drawn, _ = DISTRIBUTION.sample_numpy(arrays, ours, (0, 50, 50))
    expected = DISTRIBUTION.sample(given, {}, theirs)
    assert drawn["go"].tolist() == expected["go"].tolist()
    np.testing.assert_allclose(drawn["push"], expected["push"].numpy(), rtol=1e-5, atol=1e-6)
    assert torch.equal(ours.get_state(), theirs.get_state())


def test_their_probability_is_the_distributions() -> None:
    given, generator = params(50), torch.Generator().manual_seed(5)
    arrays = {name: x.numpy() for name, x in given.items()}
    drawn, log_prob = DISTRIBUTION.sample_numpy(arrays, generator, (0, 50, 50))
    actions = {name: torch.from_numpy(x) for name, x in drawn.items()}
    assert log_prob is not None
    expected = DISTRIBUTION.log_prob(given, actions, {})
    np.testing.assert_allclose(log_prob, expected.numpy(), rtol=1e-4, atol=1e-5)
    assert log_prob.dtype == np.float32


def test_some_rows_are_drawn_as_among_all() -> None:
    arrays = {name: x.numpy() for name, x in params(8).items()}
    whole, _ = DISTRIBUTION.sample_numpy(arrays, torch.Generator().manual_seed(5), (0, 8, 8))
    part = {name: x[3:6] for name, x in arrays.items()}
    some, _ = DISTRIBUTION.sample_numpy(part, torch.Generator().manual_seed(5), (3, 6, 8))
    assert all(np.array_equal(some[name], whole[name][3:6]) for name in SPACES)


def test_squashed_actions_are_those_that_the_distribution_draws() -> None:
    squashed = distribution_for(SPACES, SquashedGaussian)
    ours, theirs = (torch.Generator().manual_seed(5) for _ in range(2))
    given = params(50)
    given["policy.push"][0, 0], given["policy.push"][1, 1] = 30.0, -30.0
    arrays = {name: x.numpy() for name, x in given.items()}
    drawn, nothing = squashed.sample_numpy(arrays, ours, (0, 50, 50), log_prob=False)
    assert nothing is None
    expected = squashed.sample(given, {}, theirs)
    assert drawn["go"].tolist() == expected["go"].tolist()
    np.testing.assert_allclose(drawn["push"], expected["push"].numpy(), rtol=1e-5, atol=1e-6)
    assert 0.999 < drawn["push"].max() < 1
    assert drawn["push"].dtype == np.float32
    part = {name: x[3:6] for name, x in arrays.items()}
    some, _ = squashed.sample_numpy(part, torch.Generator().manual_seed(5), (3, 6, 50), False)
    assert all(np.array_equal(some[name], drawn[name][3:6]) for name in SPACES)


@pytest.mark.parametrize(
    ("space", "can"), [(Discrete(2), True), (Box(-1, 1, (2, 2)), True), (MultiDiscrete([2]), False)]
)
def test_only_simple_parts_are_drawn_here(space: Space, can: bool) -> None:
    assert distribution_for({"a": space}).in_numpy is can
    assert distribution_for({"a": space}, SquashedGaussian).in_numpy is can
