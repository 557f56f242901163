"""Environments that take their time, computing or waiting."""

from __future__ import annotations

import time
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces as gs


class Paced(gymnasium.Env[Any, Any]):
    """A step computes for `busy` seconds and waits for `asleep`; an episode has twenty."""

    observation_space = gs.Dict(
        {"seen": gs.Box(0, 1, (2,), np.float32), "action_mask": gs.MultiBinary(3)}
    )
    action_space = gs.Discrete(3)

    def __init__(self, busy: float = 0.0, asleep: float = 0.0) -> None:
        self.busy, self.asleep, self.t = busy, asleep, 0

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        self.t = 0
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert action != self.t % 3, "forbidden"
        self.t += 1
        until = time.thread_time() + self.busy
        if self.asleep:
            time.sleep(self.asleep)
        while time.thread_time() < until:
            pass
        return self._seen(), 1.0, self.t == 20, False, {}

    def _seen(self) -> Any:
        mask = np.arange(3) != self.t % 3
        return {"seen": np.zeros(2, np.float32), "action_mask": mask.astype(np.int8)}


gymnasium.register("Paced-v0", Paced)  # type: ignore[arg-type]  # a class makes them too
