"""Environments with spaces of every kind; a test can take their module away."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces as gs

from operant.core.spaces import Space

ACTIONS: dict[str, Space] = {
    "box": gs.Box(np.array([-2.0, 0.0]), np.array([5.0, 0.5]), dtype=np.float64),
    "discrete": gs.Discrete(3, start=4),
    "multidiscrete": gs.MultiDiscrete(np.array([[2, 3], [4, 2]]), start=np.array([[1, 0], [0, 7]])),
    "multibinary": gs.MultiBinary([2, 2]),
    "nested": gs.Dict(
        turn=gs.Discrete(2, start=1),
        limbs=gs.Tuple([gs.Box(0, 10, (2,), np.float32), gs.MultiDiscrete([3, 2])]),
    ),
}
OBSERVATIONS: dict[str, Space] = {
    "vector": gs.Box(-1, 1, (3,), np.float64),
    "image": gs.Box(0, 255, (12, 10, 3), np.uint8),
    "number": gs.Discrete(5, start=2),
    "nested": gs.Dict(
        picture=gs.Box(0, 255, (9, 8, 1), np.uint8),
        rest=gs.Tuple([gs.Discrete(3), gs.Box(-2, 2, (2,), np.float32)]),
    ),
}


class Odd(gymnasium.Env[Any, Any]):
    """Random observations; refuses an action that is not in its space, and pays by its numbers."""

    def __init__(
        self, action: str = "box", observation: str = "vector", masked: bool = False
    ) -> None:
        self.action_space, self.observation_space = ACTIONS[action], OBSERVATIONS[observation]
        self.masked, self.t = masked, 0
        self.mask = np.ones(3, np.int8)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self.t = 0
        return self.observation_space.sample(), self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), action
        assert not self.masked or self.mask[action - 4], action
        self.t += 1
        flat: Any = gs.flatten(self.action_space, action)
        paid = float(np.sum(flat))
        return self.observation_space.sample(), paid, self.t >= 7, False, self._info()

    def _info(self) -> dict[str, Any]:
        self.mask = np.zeros(3, np.int8)
        self.mask[self.np_random.integers(3)] = 1
        return {"action_mask": self.mask.copy()} if self.masked else {}
