"""Environments of which one goes wrong in a chosen way, and parallel samplers over them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from counter import Counter
from fault_env import DEEDS, FaultEnv, events

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


class Fragile(FaultEnv):
    """A Counter with a fault. With `again`, its replacement dies once while it is built."""

    def __init__(self, again: str = "", **fault: Any) -> None:
        if again and events(fault["record"]) and not Path(again).exists():
            Path(again).touch()
            DEEDS["kill"]()
        super().__init__(Counter(), **fault)


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
