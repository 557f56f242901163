"""Agents and networks as a user would write them, and some that are not quite right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from operant.agents import ActorCritic
from operant.agents.a2c import A2CConfig
from operant.core import AgentConfig, Count, Parts
from operant.networks import NoisyLinear


@dataclass(frozen=True, kw_only=True)
class OwnConfig(A2CConfig):
    """How an agent of one's own learns."""

    length: Count = 8  # steps between updates
    patience: Count = 7  # updates to wait


class Own(ActorCritic):
    """A2C with one setting more."""

    @classmethod
    def create(cls, parts: Parts, config: OwnConfig, seed: int) -> Own:  # type: ignore[override]  # other settings
        return super().create(parts, config, seed)


class Unannotated(ActorCritic):
    """Does not say what its settings are."""

    @classmethod
    def create(cls, parts: Any, config, seed):  # type: ignore[no-untyped-def]  # what is tested
        return super().create(parts, config, seed)


class Undecorated(AgentConfig):
    """Forgets to be a dataclass."""

    patience: Count = 7


class Careless(ActorCritic):
    """Its settings are no dataclass."""

    @classmethod
    def create(cls, parts: Parts, config: Undecorated, seed: int) -> Any:  # type: ignore[override]  # what is tested
        return None


@dataclass(frozen=True, kw_only=True)
class Incomplete(AgentConfig):
    """Has a setting without a default."""

    patience: Count


class Demanding(ActorCritic):
    """One of its settings has no default."""

    @classmethod
    def create(cls, parts: Parts, config: Incomplete, seed: int) -> Any:  # type: ignore[override]  # what is tested
        return None


class NoAgent:
    """Cannot act."""

    @classmethod
    def create(cls, parts: Parts, config: OwnConfig, seed: int) -> Any:
        return None


def function() -> None:
    """No class at all."""


class Perceptron(nn.Module):
    """One hidden layer, whatever the observations and outputs."""

    def __init__(
        self,
        observation_spaces: dict[str, Any],
        outputs: dict[str, Any],
        width: Count = 16,  # units of the hidden layer
        activation: Literal["tanh", "relu"] = "tanh",
    ) -> None:
        super().__init__()
        self.names, self.activation = list(observation_spaces), getattr(torch, activation)
        inputs = sum(space.shape[0] for space in observation_spaces.values())
        self.body = nn.Linear(inputs, width)
        self.heads = nn.ModuleList([nn.Linear(width, shape[0]) for shape in outputs.values()])
        self.outputs = list(outputs)

    def forward(self, observation: dict[str, Tensor]) -> dict[str, Tensor]:
        x = torch.cat([observation[name] for name in self.names], -1)
        x = self.activation(self.body(x))
        return {name: head(x) for name, head in zip(self.outputs, self.heads, strict=True)}


class NoisyPerceptron(Perceptron):
    """With noise in its hidden layer."""

    def __init__(self, observation_spaces: dict[str, Any], outputs: dict[str, Any]) -> None:
        super().__init__(observation_spaces, outputs)
        self.body = NoisyLinear.around(self.body)


class Remembering(nn.Module):
    """A recurrent cell; what is called action joins after it."""

    def __init__(self, observation_spaces: dict[str, Any], outputs: dict[str, Any]) -> None:
        super().__init__()
        self.late = [name for name in observation_spaces if name.startswith("action.")]
        self.early = [name for name in observation_spaces if name not in self.late]
        sizes = {name: space.shape[0] for name, space in observation_spaces.items()}
        self.state = {"h": (5,)}
        self.cell = nn.GRUCell(sum(sizes[name] for name in self.early), 5)
        width = 5 + sum(sizes[name] for name in self.late)
        self.heads = nn.ModuleList([nn.Linear(width, shape[0]) for shape in outputs.values()])
        self.outputs = list(outputs)

    def forward(
        self, observation: dict[str, Tensor], hidden_state: dict[str, Tensor]
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        seen = torch.cat([observation[name] for name in self.early], -1)
        h = self.cell(seen, hidden_state["h"])
        x = torch.cat([h, *(observation[name] for name in self.late)], -1)
        out = {name: head(x) for name, head in zip(self.outputs, self.heads, strict=True)}
        return out, {"h": h}


class Leaky(Remembering):
    """Lets actions into the hidden state."""

    def forward(
        self, observation: dict[str, Tensor], hidden_state: dict[str, Tensor]
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        out, state = super().forward(observation, hidden_state)
        return out, {"h": state["h"] + sum(observation[name].sum() for name in self.late)}


class Narrow(Perceptron):
    """Its last output has one number too many."""

    def forward(self, observation: dict[str, Tensor]) -> dict[str, Tensor]:
        out = super().forward(observation)
        return {**out, "value": out["value"].repeat(1, 3)} if "value" in out else out


class Silent(Perceptron):
    """Gives no value."""

    def forward(self, observation: dict[str, Tensor]) -> dict[str, Tensor]:
        return {k: x for k, x in super().forward(observation).items() if k != "value"}


class Broken(nn.Module):
    """Fails when it is called."""

    def __init__(self, spaces: dict[str, Any], outputs: dict[str, Any], width: int = 3) -> None:
        super().__init__()
        self.body = nn.Linear(width, 1)

    def forward(self, observation: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"value": self.body(observation["observation"])}


def no_default(spaces: dict[str, Any], outputs: dict[str, Any], width: int) -> nn.Module:
    """A setting without a default."""
    return Perceptron(spaces, outputs, width)


def no_annotation(spaces, outputs, width=3):  # type: ignore[no-untyped-def]  # what is tested
    """A setting without an annotation."""
    return Perceptron(spaces, outputs, width)


def no_module(spaces: dict[str, Any], outputs: dict[str, Any]) -> list[str]:
    """Makes something else."""
    return list(outputs)


def made(spaces: dict[str, Any], outputs: dict[str, Any], depth: int = 2) -> nn.Module:
    """A function that makes modules of a class that no other process can import."""

    class Hidden(Perceptron):
        pass

    return Hidden(spaces, outputs, 4 * depth)
