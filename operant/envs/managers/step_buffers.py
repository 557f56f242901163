"""Arrays `[B, ...]` through which environments get their actions and return their steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from operant.core.spaces import AGENT_FIELDS, AGENTS, Space, Spaces
from operant.envs.environment import Environment
from operant.envs.lives import LIFE_LOST

if TYPE_CHECKING:  # these modules import torch, which environment workers do without
    from operant.core.experience import Arrays
    from operant.core.tree import Array
    from operant.processes.shared_memory import Allocate

EnvFn = Callable[[], Environment]


class StepBuffers(NamedTuple):
    """One step of B environments, one row an environment; it may lie in shared memory."""

    action: Arrays
    observation: Arrays
    final_observation: Arrays
    reward: Array
    terminated: Array
    truncated: Array
    life_lost: Array  # whether it terminated by the loss of a life, while the game goes on
    success: Array  # 1 or 0 where an episode ended and reported it, else -1
    seed: Array  # for the next reset; -1: none
    active: Array  # whether the environment takes the next step
    agents: Arrays  # `reward`, `terminated`, `valid` of several agents `[B, N]`; empty for one

    @classmethod
    def allocate(cls, spaces: Spaces, num_envs: int, allocate: Allocate = np.zeros) -> StepBuffers:
        """Buffers for so many environments of these spaces."""

        def arrays(of: dict[str, Space]) -> Arrays:
            return {
                k: allocate((num_envs, *(s.shape or ())), np.dtype(s.dtype)) for k, s in of.items()
            }

        def vector(dtype: str) -> Array:
            return allocate((num_envs,), np.dtype(dtype))

        agents = len(spaces.agents)
        return cls(
            arrays(spaces.action),
            arrays(spaces.observation),
            arrays(spaces.observation),
            vector("float32"),
            vector("bool"),
            vector("bool"),
            vector("bool"),
            vector("int8"),
            vector("int64"),
            vector("bool"),
            {k: allocate((num_envs, agents), x) for k, x in AGENT_FIELDS.items() if agents},
        )

    def rows(self, start: int, stop: int) -> StepBuffers:
        """Some rows of every array, the same bytes."""
        parts: Any = (
            {k: v[start:stop] for k, v in x.items()} if isinstance(x, dict) else x[start:stop]
            for x in self
        )
        return StepBuffers(*parts)


class BufferedEnvs:
    """Environments that read actions from buffers and write their steps there.

    An environment is reset at once when its episode ends.
    """

    def __init__(self, envs: Sequence[Environment], buffers: StepBuffers) -> None:
        self.envs, self.buffers = list(envs), buffers

    def reset(self) -> None:
        """Begin an episode in every environment, with the seeds in the buffers."""
        for i, env in enumerate(self.envs):
            seed = int(self.buffers.seed[i])
            _put(self.buffers.observation, i, env.reset(None if seed < 0 else seed))

    def step(self) -> None:
        """One action in every active environment."""
        b = self.buffers
        active = b.active.tolist()
        for i, env in enumerate(self.envs):
            if not active[i]:
                b.reward[i], b.terminated[i], b.truncated[i], b.success[i] = 0, False, False, -1
                b.life_lost[i] = False
                for x in b.agents.values():
                    x[i] = 0
                continue
            action = {name: x[i] for name, x in b.action.items()}
            observation, b.reward[i], terminated, truncated, info = env.step(action)
            lost = b.life_lost[i] = info.get(LIFE_LOST, False)
            b.terminated[i], b.truncated[i], b.success[i] = terminated or lost, truncated, -1
            if b.agents:
                _put(b.agents, i, info[AGENTS])
            if lost:
                _put(b.final_observation, i, observation)
            if terminated or truncated:
                b.success[i] = int(info.get("is_success", -1))
                _put(b.final_observation, i, observation)
                observation = env.reset()
            _put(b.observation, i, observation)

    def snapshots(self) -> list[dict[str, Any]]:
        """The state of every environment."""
        return [env.snapshot() for env in self.envs]

    def restore(self, snapshots: list[dict[str, Any]]) -> None:
        """Continue every environment from its snapshot."""
        for env, saved in zip(self.envs, snapshots, strict=True):
            env.restore(saved)

    def close(self) -> None:
        """Close every environment."""
        for env in self.envs:
            env.close()


def _put(arrays: Arrays, row: int, values: Arrays) -> None:
    for name, x in arrays.items():
        x[row] = values[name]
