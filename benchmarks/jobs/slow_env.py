"""An environment whose step takes as long as it is told, computing or sleeping."""

from __future__ import annotations

import time
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces as gs

NAME = "benchmarks/Slow-v0"
ID = f"{__name__}:{NAME}"  # so that worker processes import this, too
EPISODE = 1_000  # steps


class Slow(gymnasium.Env[Any, Any]):
    """Shows four numbers and rewards nothing; `ms` of each step are spent."""

    def __init__(self, ms: float = 0.0, sleeps: bool = False) -> None:
        self.seconds, self.sleeps = ms / 1e3, sleeps
        self.observation_space = gs.Box(-1, 1, (4,), np.float32)
        self.action_space = gs.Discrete(2)
        self.shown = np.zeros(4, np.float32)
        self.steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        return self.shown, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if self.sleeps:
            time.sleep(self.seconds)
        elif self.seconds:
            self.compute()
        self.steps += 1
        return self.shown, 0.0, False, self.steps >= EPISODE, {}

    def compute(self) -> None:
        """Python that holds the interpreter for so much processor time.

        By the clock on the wall, more processes than cores would all be done at the same time.
        """
        end = time.thread_time() + self.seconds
        while time.thread_time() < end:
            sum(range(20))


if NAME not in gymnasium.registry:
    gymnasium.register(NAME, f"{__name__}:Slow")
