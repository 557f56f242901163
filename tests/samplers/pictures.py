"""Environments that show images."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces as gs


class Pictures(gymnasium.Env[Any, Any]):
    """Shows noise, pays for some actions, and ends a tenth of the times."""

    observation_space = gs.Box(0, 255, (2, 10, 10), np.uint8)
    action_space = gs.Discrete(3)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self._seen(), float(action), self.np_random.random() < 0.1, False, {}

    def _seen(self) -> Any:
        return self.np_random.integers(256, size=(2, 10, 10), dtype=np.uint8)


gymnasium.register("Pictures-v0", Pictures)  # type: ignore[arg-type]  # a class makes them too
