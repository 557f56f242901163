"""An environment of one's own: written, checked, trained by its class, and evaluated.

python own_env.py                          # from this directory
operant eval [RUN] --episodes 100          # later, also from this directory
operant play [RUN] --record corridor.gif
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

import operant


class Corridor(gymnasium.Env[Any, Any]):
    """Walk to the goal, which lies at one end or the other; every step costs 0.1."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 8}  # noqa: RUF012  # Gymnasium's form

    def __init__(self, length: int = 9, render_mode: str | None = None) -> None:
        self.length, self.render_mode = length, render_mode
        self.observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)  # left, right

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)  # seeds self.np_random, from which all chance comes
        self.place = self.length // 2
        self.goal = int(self.np_random.choice([0, self.length - 1]))
        return self.observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.place = int(np.clip(self.place + 2 * action - 1, 0, self.length - 1))
        terminated = self.place == self.goal  # the task ends; the time limit is not ours to see
        return self.observe(), 1.0 if terminated else -0.1, terminated, False, {}

    def observe(self) -> Any:
        ends = np.array([self.place, self.goal], np.float32)
        return 2 * ends / (self.length - 1) - 1

    def render(self) -> Any:
        image = np.full((20, 20 * self.length, 3), 255, np.uint8)
        for place, colour in ((self.goal, (80, 180, 80)), (self.place, (60, 60, 200))):
            image[:, 20 * place : 20 * (place + 1)] = colour
        return image


if __name__ == "__main__":  # a later command imports this file for its class, and must not train
    print(operant.check_env(Corridor))
    run = operant.train("ppo", Corridor, steps=4_000, env={"time_limit": 50})
    mean = run.eval(episodes=100)["eval/mean_reward"]
    print(f"{run.path}: mean return {mean:.2f}; the best is 0.70")
