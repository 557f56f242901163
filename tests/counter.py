"""A deterministic toy environment, single and as a vector environment in every autoreset mode.

Every observation says which environment, episode and step it belongs to, so a record that mixes
two episodes shows it.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces as gs
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

GOAL = 4  # ends the task
LIMIT = 3  # steps after which the clock ends an episode


class Counter(gymnasium.Env[Any, Any]):
    """Actions add up to a goal; `[seed, episode, step, sum]` is seen."""

    observation_space = gs.Box(0, np.inf, (4,), np.float32)
    action_space = gs.Discrete(3)

    def __init__(self) -> None:
        self.name, self.episode, self.t, self.sum = 0, -1, 0, 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        if seed is not None:
            self.name, self.episode = seed, -1
        self.episode, self.t, self.sum = self.episode + 1, 0, 0
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.t += 1
        self.sum += int(action)
        terminated = self.sum >= GOAL
        info = {"is_success": True} if terminated else {}
        return self._seen(), self.sum + 0.1 * self.t, terminated, self.t >= LIMIT, info

    def _seen(self) -> Any:
        return np.array([self.name, self.episode, self.t, self.sum], np.float32)


class CounterVectorEnv(VectorEnv[Any, Any, Any]):
    """Counters as one batch; `whole` gives final observations as one array, as ALE does."""

    def __init__(self, num_envs: int, mode: AutoresetMode, whole: bool = False) -> None:
        self.num_envs, self.mode, self.whole = num_envs, mode, whole
        self.metadata = {"autoreset_mode": mode}
        self.envs = [Counter() for _ in range(num_envs)]
        self.single_observation_space = Counter.observation_space
        self.single_action_space = Counter.action_space
        self.observation_space = batch_space(Counter.observation_space, num_envs)
        self.action_space = batch_space(Counter.action_space, num_envs)
        self.seen = np.zeros((num_envs, 4), np.float32)
        self.ended = np.zeros(num_envs, bool)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        rows = (options or {}).get("reset_mask", np.ones(self.num_envs, bool))
        for i in np.nonzero(rows)[0]:
            self.seen[i] = self.envs[i].reset(seed=None if seed is None else seed + int(i))[0]
        self.ended[rows] = False
        return self.seen.copy(), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        reward = np.full(self.num_envs, 99.0)  # what a reset step says must not count
        terminated, truncated = np.zeros((2, self.num_envs), bool)
        before = self.ended.copy()
        for i in np.nonzero(~before)[0]:
            answer = self.envs[i].step(actions[i])
            self.seen[i], reward[i], terminated[i], truncated[i] = answer[:4]
        self.ended = terminated | truncated
        infos: dict[str, Any] = {}
        if self.mode is AutoresetMode.NEXT_STEP and before.any():
            self.ended, kept = self.ended.copy(), self.ended
            self.reset(options={"reset_mask": before})
            self.ended = kept
        if self.mode is AutoresetMode.SAME_STEP and self.ended.any():
            infos["final_obs"] = self._final()
            self.reset(options={"reset_mask": self.ended.copy()})
        return self.seen.copy(), reward, terminated, truncated, infos

    def _final(self) -> Any:
        if self.whole:
            return self.seen.copy()
        rows = [x.copy() if ended else None for x, ended in zip(self.seen, self.ended, strict=True)]
        final = np.empty(self.num_envs, object)
        final[:] = rows
        return final
