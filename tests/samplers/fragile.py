"""Environments of which one goes wrong in a chosen way, and parallel samplers over them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from counter import Counter

from operant.core.protocols import Agent
from operant.envs.managers.simple import SimpleEnvManager
from operant.envs.providers.gymnasium import GymEnv
from operant.networks.assemble import NetworkConfig
from operant.samplers.asynchronous import AsyncSampler
from operant.samplers.collector import Collecting
from operant.samplers.parallel import ParallelSampler, Share
from operant.session.build import build_agent
from operant.session.run_settings import run_config

SEED, LENGTH = 7, 5


def throw() -> None:
    raise RuntimeError("the simulator broke")


FAULTS: dict[str, Callable[[], object]] = {
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "hang": lambda: time.sleep(1e6),
    "throw": throw,
    "dawdle": lambda: time.sleep(0.1),
}


class Fragile(Counter):
    """A Counter that goes wrong at step `at`, or at each from there; `once` only if the file
    is not there. With `again`, its replacement dies once while it is built."""

    def __init__(self, mode: str = "", at: int = 0, once: str = "", again: str = "") -> None:
        super().__init__()
        if again and Path(once).exists() and not Path(again).exists():
            Path(again).touch()
            FAULTS["kill"]()
        self.mode, self.at, self.once, self.taken = mode, at, once, 0

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.taken += 1
        if self.mode and self.taken >= self.at and not (self.once and Path(self.once).exists()):
            if self.once:
                Path(self.once).touch()
            FAULTS[self.mode]()
        return super().step(action)


def make(index: int, **kwargs: Any) -> GymEnv:
    return GymEnv(Fragile(**kwargs), index)


def shares(bad: int = -1, **kwargs: Any) -> list[Share]:
    """Two workers of two environments each, of which number `bad` is fragile."""
    fns = [partial(make, i, **(kwargs if i == bad else {})) for i in range(4)]
    return [(2, partial(SimpleEnvManager, fns[i : i + 2], SEED, i)) for i in (0, 2)]


def agent() -> Agent:
    spaces = make(0).spaces
    config = run_config("a2c")(device="cpu", network=NetworkConfig(hidden=(4,)))
    found: Agent = build_agent(config, spaces)
    return found


def parallel(
    bad: int = -1, kind: type[ParallelSampler] = ParallelSampler, **kwargs: Any
) -> ParallelSampler:
    limits = {name: kwargs.pop(name) for name in ("timeout", "max_restarts") if name in kwargs}
    return kind(shares(bad, **kwargs), agent(), Collecting(LENGTH, SEED), **limits)


def asynchronous(bad: int = -1, **kwargs: Any) -> ParallelSampler:
    return parallel(bad, AsyncSampler, **kwargs)
