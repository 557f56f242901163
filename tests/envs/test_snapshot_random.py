"""Random state of every kind is saved or told; a hostile one runs nothing."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest

from operant.core.errors import EnvironmentFault
from operant.envs.snapshot import capture, restore

GENERATORS = ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"]


class Rare(gymnasium.Env[Any, Any]):
    """Draws from `source` only every thousandth step, later than any trial looks."""

    observation_space = gymnasium.spaces.Box(0, 1, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, source: Any) -> None:
        self.source = source

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        return np.zeros(1, np.float32), 0.0, False, False, {}


def test_pythons_own_generator_is_restored() -> None:
    one, other = Rare(random.Random(1)), Rare(random.Random(2))
    one.source.gauss(0, 1)  # leaves a second value behind
    restore(other, capture(one))
    expected = [one.source.gauss(0, 1) for _ in range(5)]
    assert [other.source.gauss(0, 1) for _ in range(5)] == expected


def countdown() -> Iterator[int]:
    yield from range(9, 0, -1)


class Caller:
    """A callable object with a state of its own."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> int:
        self.calls += 1
        return self.calls


def test_the_state_of_a_callable_object_is_saved() -> None:
    one, other = Rare(Caller()), Rare(Caller())
    one.source()
    restore(other, capture(one))
    assert other.source() == 2


@pytest.mark.parametrize(
    "source", [countdown(), itertools.count(3), iter([1, 2]), random.SystemRandom()]
)
def test_what_moves_on_unseen_is_not_called_exact(source: Any) -> None:
    with pytest.raises(EnvironmentFault, match=r"source \(.*cannot be saved"):
        capture(Rare(source))


@pytest.mark.parametrize("name", GENERATORS)
def test_every_generator_of_numpy_is_restored(name: str) -> None:
    bits = getattr(np.random, name)
    one, other = Rare(np.random.Generator(bits(1))), Rare(None)
    state = capture(one)
    restore(other, state)
    assert other.source.random() == one.source.random()


def test_a_generator_is_never_looked_up_by_a_saved_name() -> None:
    state = capture(Rare(np.random.default_rng(1)))
    state["attributes"]["source"]["state"]["bit_generator"] = "test"
    with pytest.raises(EnvironmentFault, match="generator 'test'"):
        restore(Rare(None), state)
