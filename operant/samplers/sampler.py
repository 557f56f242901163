"""What all samplers have: a chunk that is being filled, episodes under way, and an evaluation."""

from __future__ import annotations

from typing import Any

from operant.core.experience import HiddenState, Metrics, TrajInfo
from operant.core.protocols import Agent, EnvironmentManager, Sampler
from operant.core.state import restore, state_of
from operant.core.tree import Array
from operant.memory.rollout import RolloutCache
from operant.samplers.evaluate import Evaluation
from operant.samplers.trajectory import TrajTracker


class ChunkSampler:
    """Collects chunks in `cache`, and sums the rewards of episodes in `tracker`."""

    manager: EnvironmentManager
    cache: RolloutCache
    tracker: TrajTracker
    seconds: dict[str, float]

    def __init__(self, agent: Agent, evaluation: Evaluation | None) -> None:
        self.agent, self.evaluation = agent, evaluation
        self.metrics: Metrics = {}

    @property
    def episode_rewards(self) -> Array:
        """Sums of rewards so far in the episodes under way, `[B]`."""
        return self.tracker.rewards

    def hidden_state(self) -> HiddenState:
        """The recurrent state that the next action will start from."""
        return self.cache.hidden_state()

    def evaluate_agents(self, itr: int) -> list[TrajInfo]:
        """Whole episodes without exploration, in environments of their own."""
        if self.evaluation is None:
            raise ValueError("evaluation = None: this sampler cannot evaluate; give it one")
        return self.evaluation.run(self.agent, itr)

    evaluate_agent = evaluate_agents  # rlpyt's spelling

    def state_dict(self) -> dict[str, Any]:
        """The environments, the episodes under way and what to act on next."""
        return state_of(self, "manager", "cache", "tracker")

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave; episodes that cannot be continued start anew."""
        restore(self, state, "manager", "cache", "tracker")


BaseSampler = Sampler  # rlpyt's name
