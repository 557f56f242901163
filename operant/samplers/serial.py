"""Acting and stepping in turn, in this process."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from operant.core import tree
from operant.core.errors import EnvironmentFault
from operant.core.experience import Experience, TrajInfo
from operant.core.protocols import Agent, EnvironmentManager
from operant.core.state import restore, state_of
from operant.memory.rollout import RolloutCache
from operant.samplers.evaluate import Evaluation
from operant.samplers.trajectory import TrajTracker


class SerialSampler:
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
    ) -> None:
        self.manager, self.agent, self.evaluation = manager, agent, evaluation
        self.reward_clip = reward_clip
        self.cache = RolloutCache(length)
        self.tracker = TrajTracker(manager.num_envs)
        self.seconds = dict.fromkeys(("acting", "stepping", "storing"), 0.0)
        observation = manager.reset(seed)
        # An example of what acting gives; without exploring it draws nothing and counts nothing.
        example = agent.act(
            tree.tensors(observation), agent.initial_state(manager.num_envs), explore=False
        )
        self.cache.start(observation, *example)

    def obtain_samples(self, itr: int) -> tuple[Experience, list[TrajInfo]]:
        """The next chunk `[T, B]`, and the episodes that ended in it."""
        if self.cache.ready():
            self.cache.clear()
        finished: list[TrajInfo] = []
        while not self.cache.ready():
            finished += self._step()
        chunk = self.cache.read()
        check_finite(chunk)
        return chunk, finished

    def _step(self) -> list[TrajInfo]:
        cache, seconds = self.cache, self.seconds
        begin = perf_counter()
        action, memo = self.agent.act(cache.observation(), cache.hidden_state())
        acted = perf_counter()
        step = self.manager.step({name: x.numpy() for name, x in action.items()})
        stepped = perf_counter()
        cache.agent_write(action, memo)
        limit = self.reward_clip
        cache.env_write(step, step.reward.clip(-limit, limit) if limit else None)
        finished = self.tracker.add(step)
        seconds["acting"] += acted - begin
        seconds["stepping"] += stepped - acted
        seconds["storing"] += perf_counter() - stepped
        return finished

    def evaluate_agents(self, itr: int) -> list[TrajInfo]:
        """Whole episodes without exploring, in environments of their own."""
        if self.evaluation is None:
            raise ValueError("this sampler was given no evaluation")
        return self.evaluation.run(self.agent, itr)

    def state_dict(self) -> dict[str, Any]:
        """The environments, the episodes under way and what to act on next."""
        return state_of(self, "manager", "cache", "tracker")

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave; episodes that cannot be continued start anew."""
        restore(self, state, "manager", "cache", "tracker")


def check_finite(chunk: Experience) -> None:
    """Refuse a chunk with a NaN or infinity in it, naming where it is."""
    shown = {"observation": chunk.observation, "reward": chunk.reward}
    for name, x in tree.leaves(shown):
        # One sum decides in the good case; an infinity or NaN anywhere survives it.
        if x.is_floating_point() and not np.isfinite(float(x.sum())):
            bad = (~x.isfinite()).nonzero()
            if len(bad):
                t, b, *place = bad[0].tolist()
                raise EnvironmentFault(
                    f"environment {b}, step {t} of the chunk: {name}{place or ''} is "
                    f"{x[tuple(bad[0])].item()}; expected a finite number"
                )
