"""The whole of training in one process."""

from __future__ import annotations

from collections import defaultdict
from math import isfinite
from time import perf_counter
from typing import Any, Self

import numpy as np

from operant.core.errors import TrainingFault
from operant.core.experience import HiddenState, Metrics, TrajInfo
from operant.core.protocols import Agent, EnvironmentManager, Memory, Sampler
from operant.core.state import restore, state_of
from operant.samplers.explorer import Explorer

LATEST = ("exploration_rate", "learning_rate", "n_updates")  # metrics that are no averages


class LocalWorker:
    """Explorer, memory and agent in turn: the loop.

    Between calls of `run`, `episodes` and `drain()` tell what happened; both go on growing until
    they are drained, so stopping and going on leaves no trace in them.
    """

    def __init__(self, explorer: Explorer, memory: Memory, agent: Agent) -> None:
        self.explorer, self.memory, self.agent = explorer, memory, agent
        self.local_step_count = 0
        self.stopping = False
        self.episodes: list[TrajInfo] = []
        self.sums: dict[str, list[float]] = {}  # by metric: sum and count since the last drain
        self.seconds: dict[str, float] = defaultdict(float)

    def run(self, nb_step: int, initial_step: int = 0) -> Self:
        """Train for `nb_step` environment steps, counted on from `initial_step`.

        Whole chunks are collected, so it may take up to one chunk more. Returns itself.
        """
        self.local_step_count = initial_step
        while self.local_step_count < initial_step + nb_step and not self.stopping:
            chunk = self.explorer.update()
            collected = perf_counter()
            self.memory.store(chunk)
            stored = perf_counter()
            metrics = self.agent.update()
            self.seconds["storing"] += stored - collected
            self.seconds["learning"] += perf_counter() - stored
            self.local_step_count += int(np.count_nonzero(chunk.valid.numpy()))
            self._count(metrics | self.sampler.metrics)
        return self

    def stop(self) -> None:
        """Let `run` return after the update under way."""
        self.stopping = True

    def _count(self, metrics: Metrics) -> None:
        self.episodes += self.explorer.finished
        for name, value in metrics.items():
            if not isfinite(value):
                raise TrainingFault(
                    f"step {self.local_step_count}: {name} is {value}; nothing was saved since. "
                    f"A smaller learning rate or a bound on the gradient (max_grad_norm) helps"
                )
            total, count = self.sums.get(name, (0.0, 0))
            self.sums[name] = [value, 1] if name in LATEST else [total + value, count + 1]

    def drain(self) -> tuple[list[TrajInfo], Metrics]:
        """Episodes ended and mean metrics since the last call."""
        metrics = {name: total / count for name, (total, count) in self.sums.items()}
        episodes, self.episodes, self.sums = self.episodes, [], {}
        return episodes, metrics

    def drain_seconds(self) -> dict[str, float]:
        """Seconds by activity, such as acting, stepping and learning, since the last call."""
        spent = dict(self.seconds)
        for name, value in self.sampler.seconds.items():
            spent[name] = spent.get(name, 0.0) + value
            self.sampler.seconds[name] = 0.0
        self.seconds.clear()
        return spent

    def reasons(self) -> list[str]:
        """Why going on from a checkpoint would not be bit for bit; empty if it would be."""
        if self.env.exact:
            return []
        return ["the environments cannot be saved; their episodes start anew"]

    @property
    def frames_per_step(self) -> int:
        """Simulator frames behind one environment step."""
        return self.env.frames_per_step

    @property
    def sampler(self) -> Sampler:
        """The sampler behind the explorer."""
        return self.explorer.sampler

    @property
    def env(self) -> EnvironmentManager:
        """The environments."""
        return self.sampler.manager

    environment = env

    @property
    def exp_cache(self) -> Memory:
        """The experience cache."""
        return self.memory

    experience_cache = exp_cache

    @property
    def network(self) -> Any:
        """The network that acts."""
        return self.agent.network

    @property
    def reward_buffer(self) -> list[float]:
        """Rewards so far in the episodes under way, one an environment."""
        rewards: list[float] = self.sampler.episode_rewards.tolist()
        return rewards

    @property
    def hidden_state(self) -> HiddenState:
        """The recurrent state that the next action will start from."""
        return self.sampler.hidden_state()

    def close(self) -> None:
        """Close the environments, and the processes that hold them."""
        self.sampler.close()

    def state_dict(self) -> dict[str, Any]:
        """Everything that training goes on from."""
        state = state_of(self, "explorer", "agent", "local_step_count", "sums")
        return state | {"episodes": [tuple(info) for info in self.episodes]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave."""
        restore(self, state, "explorer", "agent", "local_step_count", "sums")
        self.episodes = [TrajInfo(*info) for info in state["episodes"]]
