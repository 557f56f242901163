"""Whole episodes without exploration."""

from __future__ import annotations

from collections.abc import Callable

import torch

from operant.core import tree
from operant.core.experience import TrajInfo
from operant.core.protocols import Agent, EnvironmentManager
from operant.samplers.autocast import cached_autocast
from operant.samplers.trajectory import TrajTracker

MOST_ENVS = 16  # environments that play at the same time


class Evaluation:
    """Plays `episodes` episodes each time, every time from the same seed.

    Each environment plays a fixed share of them, however long they take: stopping at the first
    `episodes` to end would favour short ones.
    """

    def __init__(
        self, make_manager: Callable[[int], EnvironmentManager], episodes: int, seed: int
    ) -> None:
        self.make_manager, self.episodes, self.seed = make_manager, episodes, seed

    def run(self, agent: Agent, itr: int = 0) -> list[TrajInfo]:
        """The episodes, in the order of their environments."""
        manager = self.make_manager(min(self.episodes, MOST_ENVS))
        try:
            with cached_autocast():
                return evaluate(agent, manager, self.episodes, self.seed)
        finally:
            manager.close()


def evaluate(agent: Agent, manager: EnvironmentManager, episodes: int, seed: int) -> list[TrajInfo]:
    """`episodes` episodes, shared out evenly over the environments of `manager`."""
    envs = manager.num_envs
    shares = [episodes // envs + (b < episodes % envs) for b in range(envs)]
    played: list[list[TrajInfo]] = [[] for _ in range(envs)]
    tracker = TrajTracker(envs)
    state = agent.initial_state(envs)
    observation = manager.reset(seed)
    while any(len(done) < share for done, share in zip(played, shares, strict=True)):
        action, memo = agent.act(tree.tensors(observation), state, explore=False)
        step = manager.step({name: x.numpy() for name, x in action.items()})
        ended = step.terminated | step.truncated
        whole = (ended & step.valid).nonzero()[0]
        for b, info in zip(whole, tracker.add(step), strict=True):
            played[b].append(info)
        begins = ~step.valid if step.final_observation is None else ended | ~step.valid
        state = memo.hidden_state.reset(torch.from_numpy(begins))
        observation = step.observation
    return [info for done, share in zip(played, shares, strict=True) for info in done[:share]]
