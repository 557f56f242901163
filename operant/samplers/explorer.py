"""A sampler in a mode."""

from __future__ import annotations

from typing import Any, Literal

from operant.core.experience import Experience, TrajInfo
from operant.core.protocols import Sampler


class Explorer:
    """Collects chunks in mode `train`, plays whole episodes in modes `test` and `eval`.

    `finished` holds the episodes that ended during the last call.
    """

    def __init__(self, sampler: Sampler, mode: Literal["train", "test", "eval"] = "train") -> None:
        self.sampler, self.mode = sampler, mode
        self.itr = 0
        self.finished: list[TrajInfo] = []

    def update(self) -> Experience:
        """The next chunk."""
        if self.mode != "train":
            raise ValueError(f"mode = {self.mode!r}: update() needs mode 'train'; call play()")
        chunk, self.finished = self.sampler.obtain_samples(self.itr)
        self.itr += 1
        return chunk

    def play(self) -> list[TrajInfo]:
        """Whole episodes without exploration."""
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
