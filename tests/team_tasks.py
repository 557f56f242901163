"""Tasks of several agents with known answers, in PettingZoo's parallel form."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces as gs
from pettingzoo import ParallelEnv


class Team(ParallelEnv[str, Any, Any]):  # type: ignore[misc]  # untyped package
    """Agent i sees (i + 1, the time) and leaves after `lives[i]` steps, truncated if in `cut`.

    At time t, counted from one, its reward is 10 i + t. With `masks`, only action t modulo 3 is
    allowed, and the info says so.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "name": "team",
        "render_modes": ["rgb_array"],
        "render_fps": 30,
    }

    def __init__(
        self,
        lives: tuple[int, ...] = (2, 4, 4),
        cut: tuple[int, ...] = (2,),
        masks: str = "",
        render_mode: str | None = None,
    ) -> None:
        self.lives, self.cut, self.masks, self.render_mode = lives, cut, masks, render_mode
        self.possible_agents = [f"agent_{i}" for i in range(len(lives))]
        self.agents: list[str] = []
        self.time = 0

    def observation_space(self, agent: str) -> Any:
        box = gs.Box(0, 10, (2,), np.float32)
        if self.masks != "observation":
            return box
        return gs.Dict({"observation": box, "action_mask": gs.MultiBinary(3)})

    def action_space(self, agent: str) -> Any:
        return gs.Discrete(3)

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[Any, Any]:
        self.agents, self.time = list(self.possible_agents), 0
        return self._seen(), self._infos()

    def step(self, actions: Any) -> tuple[Any, ...]:
        assert set(actions) == set(self.agents), "actions of those who are there, and no others"
        self.time += 1
        numbers = {k: i for i, k in enumerate(self.possible_agents) if k in self.agents}
        rewards = {k: 10.0 * i + self.time for k, i in numbers.items()}
        over = {k: self.time >= self.lives[i] for k, i in numbers.items()}
        dead = {k: over[k] and i not in self.cut for k, i in numbers.items()}
        cut = {k: over[k] and i in self.cut for k, i in numbers.items()}
        answer = (self._seen(), rewards, dead, cut, self._infos())
        self.agents = [k for k in self.agents if not over[k]]
        return answer

    def _seen(self) -> dict[str, Any]:
        found = {k: self._vector(i) for i, k in enumerate(self.possible_agents) if k in self.agents}
        if self.masks != "observation":
            return found
        return {k: {"observation": x, "action_mask": self._mask()} for k, x in found.items()}

    def _vector(self, i: int) -> Any:
        return np.array([i + 1, self.time], np.float32)

    def _mask(self) -> Any:
        return np.arange(3) == self.time % 3

    def _infos(self) -> dict[str, Any]:
        told = {"action_mask": self._mask()} if self.masks == "info" else {}
        return {k: dict(told) for k in self.agents}

    def render(self) -> Any:
        return np.full((16, 16, 3), 20 * self.time, np.uint8)


class Opposites(ParallelEnv[str, Any, Any]):  # type: ignore[misc]  # untyped package
    """One step: both agents see one sign, the first shall follow it and the second oppose it.

    Both are rewarded by the mean of how well each did, so the best sum is 2. Who does not know
    which agent it is gets 1 by choosing, as one of both is then right.
    """

    metadata: ClassVar[dict[str, Any]] = {"name": "opposites", "render_modes": []}

    def __init__(self, continuous: bool = False) -> None:
        self.continuous = continuous
        self.possible_agents = ["follow", "oppose"]
        self.agents: list[str] = []
        self.rng = np.random.default_rng(0)

    def observation_space(self, agent: str) -> Any:
        return gs.Box(-1, 1, (1,), np.float32)

    def action_space(self, agent: str) -> Any:
        return gs.Box(-1, 1, (1,), np.float32) if self.continuous else gs.Discrete(2)

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[Any, Any]:
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.agents = list(self.possible_agents)
        self.sign = float(self.rng.choice([-1.0, 1.0]))
        return self._seen(), {k: {} for k in self.agents}

    def step(self, actions: Any) -> tuple[Any, ...]:
        signs = {"follow": self.sign, "oppose": -self.sign}
        each = [self._score(actions[k], signs[k]) for k in self.possible_agents]
        acting, self.agents = self.agents, []
        score = float(np.mean(each))
        yes, no = dict.fromkeys(acting, True), dict.fromkeys(acting, False)
        infos: dict[str, Any] = {k: {} for k in acting}
        return self._seen(acting), dict.fromkeys(acting, score), yes, no, infos

    def _score(self, action: Any, sign: float) -> float:
        if self.continuous:
            return 1.0 - float((action[0] - 0.5 * sign) ** 2)
        return float(action == (sign > 0))

    def _seen(self, agents: Any = None) -> dict[str, Any]:
        shown = self.agents if agents is None else agents
        return {k: np.array([self.sign], np.float32) for k in shown}
