"""Returns and lengths of the episodes under way."""

from __future__ import annotations

from typing import Any

import numpy as np

from operant.core.experience import EnvStep, TrajInfo
from operant.core.state import state_of
from operant.core.tree import Array
from operant.envs.lives import LIFE_LOST


class TrajTracker:
    """Sums each environment's raw rewards until its episode ends, in arrays that may be shared.

    A lost life ends an episode for learning, but not the game: its rewards are summed on.
    """

    def __init__(
        self, num_envs: int, rewards: Array | None = None, lengths: Array | None = None
    ) -> None:
        self.rewards = np.zeros(num_envs, dtype=np.float64) if rewards is None else rewards
        self.lengths = np.zeros(num_envs, dtype=np.int64) if lengths is None else lengths
        self.ended: list[int] = []  # environments of the episodes that the last step ended

    def add(self, step: EnvStep) -> list[TrajInfo]:
        """Add one step; returns the episodes that it ended."""
        self.rewards += step.reward
        self.lengths += step.valid
        ended, self.ended = step.terminated | step.truncated, []
        if not np.count_nonzero(ended):  # a fifth of the time that `any` takes
            return []
        ended &= ~step.infos.get(LIFE_LOST, np.zeros_like(ended))
        self.ended = np.nonzero(ended & step.valid)[0].tolist()  # not those of a lost worker
        finished = [self._finish(b, step.infos) for b in self.ended]
        self.rewards[ended] = 0.0
        self.lengths[ended] = 0
        return finished

    def _finish(self, b: int, infos: dict[str, Any]) -> TrajInfo:
        success = infos.get("is_success")
        # Only some environments of a batch may report it; Gymnasium marks those that do.
        reported = success is not None and bool(infos.get("_is_success", np.ones_like(success))[b])
        return TrajInfo(
            int(self.lengths[b]),
            float(self.rewards[b]),
            bool(np.asarray(success)[b]) if reported else None,
        )

    def state_dict(self) -> dict[str, Any]:
        """The sums so far."""
        state = state_of(self, "rewards", "lengths")
        return {name: x.copy() for name, x in state.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put the sums back."""
        self.rewards[:] = state["rewards"]
        self.lengths[:] = state["lengths"]
