"""A sampler in a mode."""

from __future__ import annotations

from typing import Any, Literal

from operant.core.experience import Experience, TrajInfo
from operant.core.protocols import Sampler
from operant.samplers.reward_normalizer import RewardNormalizer


class Explorer:
    """Collects chunks in mode `train`, plays whole episodes in modes `test` and `eval`.

    `finished` holds the episodes that ended during the last call, with the rewards that the
    environment gave; `reward_normalizer`, if there is one, changes those of chunks.
    """

    def __init__(
        self,
        sampler: Sampler,
        mode: Literal["train", "test", "eval"] = "train",
        reward_normalizer: RewardNormalizer | None = None,
    ) -> None:
        self.sampler, self.mode = sampler, mode
        self.reward_normalizer = reward_normalizer
        self.itr = 0
        self.finished: list[TrajInfo] = []

    def update(self) -> Experience:
        """The next chunk."""
        if self.mode != "train":
            raise ValueError(f"mode = {self.mode!r}: update() needs mode 'train'; call play()")
        chunk, self.finished = self.sampler.obtain_samples(self.itr)
        self.itr += 1
        return self.reward_normalizer(chunk) if self.reward_normalizer else chunk

    def play(self) -> list[TrajInfo]:
        """Whole episodes without exploration."""
        self.finished = self.sampler.evaluate_agents(self.itr)
        self.itr += 1
        return self.finished

    def state_dict(self) -> dict[str, Any]:
        """How often it was called, and when it trains the sampler's state and statistics."""
        state: dict[str, Any] = {"itr": self.itr}
        if self.mode == "train":
            state["sampler"] = self.sampler.state_dict()
        if self.reward_normalizer:
            state["reward_normalizer"] = self.reward_normalizer.state_dict()
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave."""
        self.itr = state["itr"]
        if self.mode == "train":
            self.sampler.load_state_dict(state["sampler"])
        if self.reward_normalizer:
            self.reward_normalizer.load_state_dict(state["reward_normalizer"])
