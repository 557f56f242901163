"""An environment that crashes at a step, if asked with a child that holds all its pipes."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces as gs

from operant.envs.providers.gymnasium import GymEnv

CHILD_SECONDS = 60  # that the child lives


class Crashing(gymnasium.Env[Any, Any]):
    """Ends its process by `number` at step `at`, 0: when made; never if `number` is 0.

    With a file `child` it is left by a child, whose id is written there, and does so only once.
    """

    observation_space = gs.Box(-1, 1, (2,), np.float32)
    action_space = gs.Discrete(2)

    def __init__(self, number: int = 0, at: int = 3, child: str = "") -> None:
        self.number, self.at, self.child, self.t = number, at, child, 0
        self.crash()

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        self.t = 0
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.t += 1
        self.crash()
        return np.full(2, self.t / 100, np.float32), 1.0, False, self.t >= 10, {}

    def crash(self) -> None:
        """End the process, if it is time."""
        if not self.number or self.t != self.at:
            return
        if self.child:
            if Path(self.child).exists():
                return
            child = os.fork()
            if child == 0:
                time.sleep(CHILD_SECONDS)
                os._exit(0)
            Path(self.child).write_text(str(child))
        os.kill(os.getpid(), self.number)


def make(**kwargs: Any) -> GymEnv:
    """A Crashing as an Environment."""
    return GymEnv(Crashing(**kwargs), 0)
