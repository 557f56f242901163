"""Dropout and batch norm: agents act and are evaluated in eval mode, and learn in training mode."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch
from agent_parts import AgentParts
from gymnasium.spaces import Box, Discrete
from torch import Tensor, nn
from worked import Column, record

from operant.agents.modes import mode_dependent
from operant.agents.registry import AGENTS
from operant.core.experience import Experience, HiddenState, Tensors
from operant.core.spaces import Space, Spaces
from operant.networks.assemble import NetworkConfig, build_network
from operant.networks.custom import CustomNetwork
from operant.networks.ensemble import Ensemble

SETTINGS: dict[str, dict[str, Any]] = {
    "a2c": {"length": 4},
    "ppo": {"length": 4, "epochs": 1, "minibatch": 8},
    "vtrace": {"length": 4},
    "acer": {"length": 4, "learning_starts": 0, "batch_size": 8},
    "dqn": {"learning_starts": 0, "batch_size": 8, "updates_per_step": 1.0},
    "rainbow": {"learning_starts": 0, "batch_size": 8, "updates_per_step": 1.0},
    "ddpg": {"learning_starts": 0, "batch_size": 8},
    "maddpg": {"learning_starts": 0, "batch_size": 8, "updates_per_step": 1.0},
    "sac": {"learning_starts": 0, "batch_size": 8},
}
PUSH: dict[str, Space] = {"action": Box(-1, 1, ())}
SPACES = Spaces({"state": Box(-9, 9, (), np.int64)}, {"action": Discrete(2)})


class Noisy(nn.Module):
    """Batch norm and dropout before linear outputs; remembers in which modes it has run."""

    def __init__(self, outputs: dict[str, tuple[int, ...]]) -> None:
        super().__init__()
        self.norm, self.dropout = nn.BatchNorm1d(4), nn.Dropout(0.5)
        self.heads = nn.ModuleDict(
            {name.replace(".", "/"): nn.Linear(4, size) for name, (size,) in outputs.items()}
        )
        self.ran: list[tuple[bool, bool, bool]] = []

    def forward(self, observation: Tensors, state: HiddenState) -> tuple[Tensors, HiddenState]:
        self.ran.append((self.training, self.norm.training, self.dropout.training))
        seen = observation["state"].float() + observation.get("action.action", 0)
        x = self.dropout(self.norm(seen.unsqueeze(-1) + torch.arange(4.0)))
        out = {name.replace("/", "."): head(x) for name, head in self.heads.items()}
        return out, HiddenState()


class NoisyParts(AgentParts):
    """Networks with dropout and batch norm."""

    def network(self, outputs: Any, late: Any = None, members: int = 1, noisy: bool = False) -> Any:
        made = [CustomNetwork(Noisy(outputs)) for _ in range(members)]
        return made[0] if members == 1 else Ensemble(made)


def make(name: str) -> Any:
    torch.manual_seed(0)
    cls, config = AGENTS[name][:2]
    spaces = Spaces(SPACES.observation, PUSH) if name in ("ddpg", "maddpg") else SPACES
    parts = NoisyParts(spaces, NetworkConfig())
    return cls.create(parts, config(**SETTINGS[name]), 1)


def chunk() -> Experience:
    found = record(*[Column([0, 1, 2, 3, 4], [1.0, 0.0, 1.0, 0.0], truncated=(2,))] * 4)
    logits = torch.zeros(4, 4, 2).log_softmax(-1)
    return found._replace(memo=found.memo | {"logits": logits})


def modes(agent: Any) -> set[tuple[bool, bool, bool]]:
    """In which the acting network ran since the last call."""
    ran = agent.network.module.ran
    found = set(ran)
    ran.clear()
    return found


def seen() -> dict[str, Tensor]:
    return {"state": torch.arange(8)}


ON, OFF = (True, True, True), (False, False, False)


@pytest.mark.parametrize("explore", [False, True])
@pytest.mark.parametrize("name", SETTINGS)
def test_acting_is_in_eval_mode_and_moves_no_statistics(name: str, explore: bool) -> None:
    agent = make(name)
    before = agent.network.module.norm.running_mean.clone()
    agent.act(seen(), explore=explore)
    assert modes(agent) == {OFF}
    assert torch.equal(agent.network.module.norm.running_mean, before)


@pytest.mark.parametrize("name", SETTINGS)
def test_gradient_steps_are_in_training_mode_and_acting_after_them_is_not(name: str) -> None:
    agent = make(name)
    before = agent.network.module.norm.running_mean.clone()
    agent.memory.store(chunk())
    agent.update()
    assert ON in modes(agent)
    assert not torch.equal(agent.network.module.norm.running_mean, before)
    agent.act(seen(), explore=False)
    assert modes(agent) == {OFF}


@pytest.mark.parametrize("name", SETTINGS)
def test_around_a_gradient_step_even_one_that_fails_all_is_in_eval_mode(name: str) -> None:
    agent = make(name)
    agent.memory.store(chunk())
    before: list[Any] = []

    def fail(*inputs: Any) -> Any:
        before.extend(modes(agent))
        raise ArithmeticError

    agent.descents[0].program = fail
    with pytest.raises(ArithmeticError):
        agent.update()
    agent.act(seen())
    assert modes(agent) == {OFF}
    assert set(before) <= {OFF}


def test_values_of_a_target_network_and_of_critics_are_in_eval_mode() -> None:
    agent = make("sac")
    agent.memory.store(chunk())
    agent.update()
    target = [m for m in agent.critics.target.network.modules() if isinstance(m, Noisy)]
    online = [m for m in agent.critics.network.modules() if isinstance(m, Noisy)]
    assert [set(m.ran) for m in target] == [{OFF}] * 2
    assert [set(m.ran) for m in online] == [{ON}] * 2
    assert not any(m.training or m.norm.training for m in online)


def test_an_actor_in_another_process_acts_in_eval_mode() -> None:
    actor = pickle.loads(pickle.dumps(make("ppo").actor))
    actor.act(seen())
    assert actor.network.module.ran == [OFF]


def test_what_was_frozen_in_eval_mode_stays_there() -> None:
    noisy = Noisy({"value": (1,)})
    noisy.norm.eval()
    assert [type(m) for m in mode_dependent(CustomNetwork(noisy))] == [Noisy, nn.Dropout]


@pytest.mark.parametrize("lstm", [0, 8])
def test_the_packages_own_networks_have_nothing_to_switch(lstm: int) -> None:
    config = NetworkConfig(hidden=(8,), lstm=lstm, normalize=True)
    spaces: dict[str, Space] = {"x": Box(-1, 1, (3,)), "image": Box(0, 255, (3, 12, 12), np.uint8)}
    assert mode_dependent(build_network(config, spaces, {"value": (1,)})) == ()


@pytest.mark.parametrize(
    ("module", "found"),
    [
        (nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.LayerNorm(2)), 0),
        (nn.Sequential(nn.Dropout2d(), nn.RReLU(), nn.InstanceNorm1d(2)), 3),
        (nn.LSTM(2, 2), 0),
        (nn.LSTM(2, 2, num_layers=2, dropout=0.1), 1),
        (nn.utils.spectral_norm(nn.Linear(2, 2)), 1),
    ],
)
def test_modules_that_depend_on_the_mode_are_found(module: nn.Module, found: int) -> None:
    assert len(mode_dependent(module)) == found
