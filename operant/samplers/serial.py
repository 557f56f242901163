"""Acting and stepping in turn, in this process."""

from __future__ import annotations

from operant.core import tree
from operant.core.experience import Arrays, Experience, TrajInfo
from operant.core.protocols import Agent, EnvironmentManager
from operant.memory.rollout import RolloutCache, laid_out, rows_like
from operant.samplers.collector import Collecting, Collector, check_finite
from operant.samplers.evaluate import Evaluation
from operant.samplers.sampler import ChunkSampler


class SerialSampler(ChunkSampler):
    """One batched act, then one step of every environment, `length` times.

    The chunk it returns is one buffer that the next call overwrites.
    """

    def __init__(
        self,
        manager: EnvironmentManager,
        agent: Agent,
        length: int,
        seed: int,
        reward_clip: float = 0.0,
        evaluation: Evaluation | None = None,
        decorrelate: int = 0,
        mid_batch_reset: bool = True,
    ) -> None:
        super().__init__(agent, evaluation)
        self.manager, self.cache = manager, RolloutCache(length)
        plan = Collecting(length, seed, reward_clip, decorrelate, mid_batch_reset)
        self.collector = Collector(manager, agent, self.cache, plan)
        self.tracker, self.seconds = self.collector.tracker, self.collector.seconds
        self.collector.start_envs(seed, decorrelate)
        agents = len(manager.spaces.agents)
        self.cache.adopt(chunk_for(agent, self.collector.observation, length, agents))
        self.collector.start_agent()

    def obtain_samples(self, itr: int) -> tuple[Experience, list[TrajInfo]]:
        """The next chunk `[T, B]`, and the episodes that ended in it."""
        if self.cache.ready():
            self.cache.clear()
        finished = self.collector.collect_batch(itr)
        chunk = self.cache.read()
        check_finite(chunk)
        return chunk, finished

    def close(self) -> None:
        """Close the environments."""
        self.manager.close()


def chunk_for(agent: Agent, observation: Arrays, length: int, agents: int = 0) -> Experience:
    """Arrays for a chunk of such observations and of what this agent does with them."""
    return laid_out(example(agent, observation, agents), length)


def example(agent: Agent, observation: Arrays, agents: int = 0) -> Experience:
    """One row of such a chunk; without exploration, acting draws no random numbers."""
    count = len(next(iter(observation.values())))
    decision = agent.act(tree.tensors(observation), agent.initial_state(count), explore=False)
    return rows_like(observation, *decision, agents)
