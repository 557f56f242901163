"""An action may have any name, also that of what a network or an agent gives itself."""

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
from operant.envs.managers.simple import SimpleEnvManager
from operant.envs.providers.gymnasium import GymEnv
from operant.networks.assemble import NetworkConfig
from operant.samplers.explorer import Explorer
from operant.samplers.serial import SerialSampler

NAMES = ("value", "policy", "q", "action", "log_prob", "slope")
SETTINGS: dict[str, dict[str, Any]] = {
    "a2c": {"length": 5},
    "ppo": {"length": 5, "minibatch": 10},
    "dqn": {"learning_starts": 10, "dueling": True},
    "sac": {"learning_starts": 10, "batch_size": 4, "length": 5},
}


class Named(gymnasium.Env[Any, Any]):
    """One step an episode; the action called `value` earns what it is."""

    observation_space = gs.Box(-1, 1, (2,), np.float32)
    action_space = gs.Dict({name: gs.Discrete(2) for name in NAMES})

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert set(action) == set(NAMES)
        return np.zeros(2, np.float32), float(action["value"]), True, False, {}


@pytest.mark.parametrize("separate", [False, True])
@pytest.mark.parametrize("name", SETTINGS)
def test_an_action_called_value_is_learned_like_any_other(name: str, separate: bool) -> None:
    manager = SimpleEnvManager([partial(GymEnv, Named())] * 4, seed=1)
    network = NetworkConfig(hidden=(8,), separate=separate)
    agent = create(name, manager.spaces, network, {"lr": Schedule(0.02), **SETTINGS[name]})
    worker = LocalWorker(
        Explorer(SerialSampler(manager, agent, SETTINGS[name].get("length", 4), seed=1)),
        agent.memory,
        agent,
    )
    worker.run(1_000)
    seen = {"observation": torch.zeros(1, 2)}
    assert agent.act(seen, explore=False)[0]["value"].tolist() == [1]
