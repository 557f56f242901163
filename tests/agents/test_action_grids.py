"""Actions that are grids of choices: MultiDiscrete and MultiBinary of rank two."""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from agent_parts import create
from gymnasium import spaces as gs

from operant.containers.local import LocalWorker
from operant.core.schedule import Schedule
from operant.core.spaces import Space
from operant.envs.managers.simple import SimpleEnvManager
from operant.envs.providers.gymnasium import GymEnv
from operant.networks.assemble import NetworkConfig
from operant.samplers.explorer import Explorer
from operant.samplers.serial import SerialSampler

SETTINGS: dict[str, dict[str, Any]] = {
    "a2c": {"length": 5},
    "ppo": {"length": 5, "minibatch": 10},
    "dqn": {"learning_starts": 10},
    "sac": {"learning_starts": 10, "batch_size": 16, "length": 5, "alpha": 0.1},
}
GRIDS: dict[str, Space] = {
    "equal": gs.MultiDiscrete(np.full((2, 3), 2)),
    "unequal": gs.MultiDiscrete(np.array([[2, 3], [3, 2]])),
    "binary": gs.MultiBinary([2, 2]),
}


class Grid(gymnasium.Env[Any, Any]):
    """One step an episode; a chosen one in the corner that the last index names earns a reward."""

    observation_space = gs.Box(-1, 1, (2,), np.float32)

    def __init__(self, space: Space) -> None:
        self.action_space = space

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action)
        return np.zeros(2, np.float32), float(action[0, -1] == 1), True, False, {}


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("name", SETTINGS)
def test_a_grid_of_choices_is_acted_stored_and_learned(name: str, grid: str) -> None:
    manager = SimpleEnvManager([partial(GymEnv, Grid(GRIDS[grid]))] * 4, seed=1)
    network = NetworkConfig(hidden=(8,))
    agent = create(name, manager.spaces, network, {"lr": Schedule(0.02), **SETTINGS[name]})
    length = SETTINGS[name].get("length", 4)
    sampler = SerialSampler(manager, agent, length, seed=1)
    LocalWorker(Explorer(sampler), agent.memory, agent).run(1_000)
    best = agent.act({"observation": torch.zeros(3, 2)}, explore=False)[0]["action"]
    assert best.shape == (3, *(GRIDS[grid].shape or ()))
    assert best[:, 0, -1].tolist() == [1, 1, 1]
