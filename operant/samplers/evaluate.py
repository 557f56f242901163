"""Whole episodes without exploration."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from operant.core import tree
from operant.core.experience import EnvStep, TrajInfo
from operant.core.protocols import Agent, EnvironmentManager
from operant.core.tree import Array
from operant.samplers.autocast import cached_autocast
from operant.samplers.trajectory import TrajTracker

MOST_ENVS = 16  # environments that play at the same time


def never() -> bool:
    """Nobody asks to stop."""
    return False


class Evaluation:
    """Plays `episodes` episodes each time, every time from the same seed.

    Each environment plays a fixed share of them, however long they take: stopping at the first
    `episodes` to end would favour short ones. An episode counts as it is after `max_steps`, if that
    is not zero. As soon as `stopping()` is true there is no result: an empty list.
    """

    def __init__(
        self,
        make_manager: Callable[[int], EnvironmentManager],
        episodes: int,
        seed: int,
        max_steps: int = 0,
        stopping: Callable[[], bool] = never,
    ) -> None:
        self.make_manager, self.episodes, self.seed = make_manager, episodes, seed
        self.max_steps, self.stopping = max_steps, stopping

    def run(self, agent: Agent, itr: int = 0) -> list[TrajInfo]:
        """The episodes, in the order of their environments."""
        if self.stopping():
            return []
        manager = self.make_manager(min(self.episodes, MOST_ENVS))
        try:
            with cached_autocast():
                settings = (self.seed, self.max_steps, self.stopping)
                return evaluate(agent, manager, self.episodes, *settings)
        finally:
            manager.close()


def evaluate(
    agent: Agent,
    manager: EnvironmentManager,
    episodes: int,
    seed: int,
    max_steps: int = 0,
    stopping: Callable[[], bool] = never,
) -> list[TrajInfo]:
    """`episodes` episodes, shared out evenly over the environments of `manager`."""
    envs = manager.num_envs
    scores = _Scores(envs, episodes, max_steps, manager.spaces.agents)
    state = agent.initial_state(envs)
    observation = manager.reset(seed)
    while scores.missing().any():
        if stopping():
            return []
        action, memo = agent.act(tree.tensors(observation), state, explore=False)
        step = manager.step({name: x.numpy() for name, x in action.items()})
        scores.add(step)
        ended = step.terminated | step.truncated
        begins = ~step.valid if step.final_observation is None else ended | ~step.valid
        state = memo.hidden_state.reset(torch.from_numpy(begins))
        observation = step.observation
        if scores.all_cut():
            state, observation = agent.initial_state(envs), manager.reset()
            scores.begin()
    return scores.episodes()


class _Scores:
    """The episodes played so far in each environment, and which were cut but still go on.

    A manager cannot reset one environment alone. So one whose episode was cut plays on, uncounted,
    until the episode ends by itself or every environment with episodes left is as far.
    """

    def __init__(
        self, envs: int, episodes: int, max_steps: int, agents: tuple[str, ...] = ()
    ) -> None:
        self.agents = agents
        self.shares = np.array([episodes // envs + (b < episodes % envs) for b in range(envs)])
        self.played: list[list[TrajInfo]] = [[] for _ in range(envs)]
        self.max_steps = max_steps or np.inf
        self.begin()

    def begin(self) -> None:
        """New episodes begin everywhere."""
        self.tracker = TrajTracker(len(self.played), self.agents)
        self.cut = np.zeros(len(self.played), bool)

    def add(self, step: EnvStep) -> None:
        """Count one step."""
        ended = step.terminated | step.truncated
        lengths = self.tracker.lengths + step.valid
        reached = (lengths >= self.max_steps) & step.valid & ~ended & ~self.cut
        whole = ((ended | reached) & step.valid).nonzero()[0]
        finished = self.tracker.add(step._replace(truncated=step.truncated | reached))
        for b, info in zip(whole, finished, strict=True):
            if not self.cut[b]:
                self.played[b].append(info)
        self.cut = (self.cut & ~ended) | reached

    def missing(self) -> Array:
        """Which environments have episodes left to play, `[B]`."""
        return np.array([len(played) for played in self.played]) < self.shares

    def all_cut(self) -> bool:
        """Whether nothing that is still counted goes on, but episodes are missing."""
        missing = self.missing()
        return bool(self.cut.any() and missing.any() and self.cut[missing].all())

    def episodes(self) -> list[TrajInfo]:
        """Every environment's share, in the order of the environments."""
        pairs = zip(self.played, self.shares.tolist(), strict=True)
        return [info for played, share in pairs for info in played[:share]]
