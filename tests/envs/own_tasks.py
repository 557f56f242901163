"""Environments and wrappers as a user writes them, registered nowhere."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from counter import Counter
from gymnasium import spaces as gs
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv


class Corridor(gymnasium.Env[Any, Any]):
    """A reward of 1 for reaching the right end; a small shift of the start is drawn."""

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012  # as Gymnasium types it

    def __init__(self, length: int = 8, render_mode: str | None = None) -> None:
        self.length, self.render_mode = length, render_mode
        self.observation_space = gs.Box(0, 2, (2,), np.float32)
        self.action_space = gs.Discrete(2)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.place, self.shift = 0, float(self.np_random.random())
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.place = max(0, self.place + (1 if action == 1 else -1))
        done = self.place >= self.length
        return self._seen(), float(done), done, False, {}

    def render(self) -> Any:
        return np.full((32, 32, 3), 20 * self.place, np.uint8)

    def _seen(self) -> Any:
        return np.array([self.place / self.length, self.shift], np.float32)


def make_corridor(length: int = 8, render_mode: str | None = None) -> Corridor:
    return Corridor(length, render_mode)


class Doubled(gymnasium.RewardWrapper[Any, Any]):
    def reward(self, reward: Any) -> float:
        return 2.0 * float(reward)


class PlusOne(gymnasium.RewardWrapper[Any, Any]):
    def reward(self, reward: Any) -> float:
        return float(reward) + 1


class Numbered(gymnasium.Env[Any, Any]):
    """Observation k of an episode is `[k, 10 k]`."""

    observation_space: gymnasium.Space[Any] = gs.Box(0, np.inf, (2,), np.float32)
    action_space = gs.Discrete(2)

    def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
        self.t = 1
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.t += 1
        return self._seen(), 1.0, False, False, {}

    def _seen(self) -> Any:
        return np.array([self.t, 10 * self.t], np.float32)


class Pictures(Numbered):
    """Images of 6 x 5 pixels and three channels, all of one number a channel."""

    observation_space = gs.Box(0, 255, (6, 5, 3), np.uint8)

    def _seen(self) -> Any:
        return np.broadcast_to(np.array([1, 2, 3], np.uint8) * self.t, (6, 5, 3)).copy()


class Masked(Numbered):
    """The mask in its observation allows action 0 at odd steps, action 1 at even ones."""

    observation_space = gs.Dict(
        {"x": gs.Box(0, 99, (2,), np.float32), "action_mask": gs.MultiBinary(2)}
    )

    def _seen(self) -> Any:
        mask = np.array([self.t % 2, 1 - self.t % 2], np.int8)
        return {"x": np.array([self.t, 0], np.float32), "action_mask": mask}


class OldStep(Numbered):
    def step(self, action: Any) -> Any:
        return self._seen(), 1.0, False, {}


class OldReset(Numbered):
    def reset(self, **_: Any) -> Any:
        self.t = 1
        return self._seen()


class NotAnEnv:
    def reset(self) -> int:
        return 0


def same_step(num_envs: int = 3) -> VectorEnv[Any, Any, Any]:
    fns: Any = [Counter] * num_envs
    return SyncVectorEnv(fns, autoreset_mode=AutoresetMode.SAME_STEP)


def three_next_step() -> VectorEnv[Any, Any, Any]:
    fns: Any = [Counter] * 3
    return SyncVectorEnv(fns, autoreset_mode=AutoresetMode.NEXT_STEP)


def never_reset() -> VectorEnv[Any, Any, Any]:
    fns: Any = [Counter] * 3
    return SyncVectorEnv(fns, autoreset_mode=AutoresetMode.DISABLED)
