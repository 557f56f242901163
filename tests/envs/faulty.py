"""An environment that goes wrong in a chosen way at a chosen step."""

from __future__ import annotations

import functools
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from counter import Counter
from gymnasium import spaces as gs

from operant.envs.providers.gymnasium import GymEnv

FINE = np.zeros(2, np.float32)


class FaultEnv(gymnasium.Env[Any, Any]):
    """Fine until step `at`; `once`, a file, makes it go wrong only if it is not there yet."""

    observation_space = gs.Box(-1, 1, (2,), np.float32)
    action_space = gs.Discrete(2)

    def __init__(self, mode: str = "", at: int = 3, once: str = "") -> None:
        if mode == "construct":
            raise RuntimeError("no such simulator")
        self.mode, self.at, self.once, self.t = mode, at, once, 0

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        self.t = 0
        return FINE, {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self.t += 1
        observation, reward = FINE + self.t / 100, 1.0
        if self.t == self.at and not (self.once and Path(self.once).exists()):
            if self.once:
                Path(self.once).touch()
            observation, reward = fault(self.mode, observation)
        return observation, reward, False, self.t >= 10, {}


def throw() -> None:
    raise RuntimeError("the simulator broke")


FAULTS: dict[str, Callable[[], Any]] = {
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "segv": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "exit": lambda: os._exit(7),
    "stop": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "throw": throw,
    "sys exit": lambda: sys.exit(0),
    "hang": lambda: time.sleep(1e6),
}
WRONG: dict[str, tuple[Any, Any]] = {
    "nan": (np.array([0, np.nan], np.float32), 1.0),
    "inf": (np.array([np.inf, 0], np.float32), 1.0),
    "shape": (np.zeros(3, np.float32), 1.0),
    "dtype": (np.array(["a", "b"]), 1.0),
    "none": (None, 1.0),
    "reward nan": (FINE, float("nan")),
    "reward none": (FINE, None),
    "reward array": (FINE, np.zeros(2)),
}


def fault(mode: str, observation: Any) -> tuple[Any, Any]:
    """Do what the mode says, or return what it says."""
    if mode in FAULTS:
        FAULTS[mode]()
    return WRONG.get(mode, (observation, 1.0))


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
