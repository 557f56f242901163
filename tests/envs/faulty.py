"""Environments of which one goes wrong, as managers make them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from counter import Counter
from fault_env import FaultEnv

from operant.envs.providers.gymnasium import GymEnv


def make(index: int, **kwargs: Any) -> GymEnv:
    """A FaultEnv as an Environment."""
    return GymEnv(FaultEnv(**kwargs), index)


def fns(count: int, bad: int, **kwargs: Any) -> list[Callable[[], GymEnv]]:
    """Environments of which number `bad` goes wrong."""
    return [functools.partial(make, i, **(kwargs if i == bad else {})) for i in range(count)]


def counter(index: int) -> GymEnv:
    """A Counter, from a module that a worker can import without torch."""
    return GymEnv(Counter(), index)


def actions(count: int) -> dict[str, Any]:
    return {"action": np.zeros(count, np.int64)}


gymnasium.register("Faulty-v0", FaultEnv)  # type: ignore[arg-type]  # a class makes them too
