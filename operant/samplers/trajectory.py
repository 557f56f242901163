"""Returns and lengths of the episodes under way."""

from __future__ import annotations

from typing import Any

import numpy as np

from operant.core.experience import EnvStep, TrajInfo
from operant.core.state import restore, state_of


class TrajTracker:
    """Sums each environment's raw rewards until its episode ends."""

    def __init__(self, num_envs: int) -> None:
        self.rewards = np.zeros(num_envs, dtype=np.float64)
        self.lengths = np.zeros(num_envs, dtype=np.int64)

    def add(self, step: EnvStep) -> list[TrajInfo]:
        """Take in one step; the episodes that it ended."""
        self.rewards += step.reward
        self.lengths += step.valid
        ended = step.terminated | step.truncated
        if not ended.any():
            return []
        whole = np.nonzero(ended & step.valid)[0].tolist()  # one that was lost tells nothing
        finished = [self._finish(b, step.infos) for b in whole]
        self.rewards[ended] = 0.0
        self.lengths[ended] = 0
        return finished

    def _finish(self, b: int, infos: dict[str, Any]) -> TrajInfo:
        success = infos.get("is_success")
        # Of a batch, some environments may say and others not; Gymnasium marks those that do.
        told = success is not None and bool(infos.get("_is_success", np.ones_like(success))[b])
        return TrajInfo(
            int(self.lengths[b]),
            float(self.rewards[b]),
            bool(np.asarray(success)[b]) if told else None,
        )

    def state_dict(self) -> dict[str, Any]:
        """The sums so far."""
        return state_of(self, "rewards", "lengths")

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put the sums back."""
        restore(self, state, "rewards", "lengths")
