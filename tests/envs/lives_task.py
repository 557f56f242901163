"""A game of three lives, each of four steps, worth one point a step."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces as gs

LIFE, LIVES = 4, 3


class ThreeLives(gymnasium.Env[Any, Any]):
    observation_space = gs.Box(0, 99, (1,), np.float32)
    action_space = gs.Discrete(2)
    time = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.time = 0
        return self._shown(), {"lives": LIVES}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.time += 1
        lives = LIVES - self.time // LIFE
        return self._shown(), 1.0, lives == 0, False, {"lives": lives}

    def _shown(self) -> Any:
        return np.array([self.time], np.float32)
