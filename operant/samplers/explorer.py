"""A sampler in a mode."""

from __future__ import annotations

from typing import Any, Literal

from operant.core.experience import Experience, TrajInfo
from operant.core.protocols import Sampler


class Explorer:
    """Delivers experience: `train` collects chunks, `test` and `eval` play whole episodes.

    `finished` holds the episodes that ended during the last call.
    """

    def __init__(self, sampler: Sampler, mode: Literal["train", "test", "eval"] = "train") -> None:
        self.sampler, self.mode = sampler, mode
        self.itr = 0
        self.finished: list[TrajInfo] = []

    def update(self) -> Experience:
        """The next chunk."""
        if self.mode != "train":
            raise ValueError(f"an explorer in mode {self.mode!r} collects nothing; call play()")
        chunk, self.finished = self.sampler.obtain_samples(self.itr)
        self.itr += 1
        return chunk

    def play(self) -> list[TrajInfo]:
        """Whole episodes without exploring."""
        self.finished = self.sampler.evaluate_agents(self.itr)
        self.itr += 1
        return self.finished

    def state_dict(self) -> dict[str, Any]:
        """How often it was called, and the sampler's state when it trains."""
        state: dict[str, Any] = {"itr": self.itr}
        if self.mode == "train":
            state["sampler"] = self.sampler.state_dict()
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave."""
        self.itr = state["itr"]
        if self.mode == "train":
            self.sampler.load_state_dict(state["sampler"])
