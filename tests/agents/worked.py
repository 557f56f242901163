"""Networks and records so small that their numbers can be worked by hand."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from operant.agents.advantages import advantages
from operant.core.experience import Experience, HiddenState, Tensors
from operant.networks.custom import CustomNetwork
from operant.ops.distribution import POLICY
from operant.ops.value import Q

Rows = Sequence[Sequence[float]]


def output(prefix: str, name: str) -> str:
    """What a network calls an output: those of actions have a prefix."""
    return name if name in ("value", "slope") else prefix + name


class Table(nn.Module):
    """Outputs looked up by the observation `state`, so a gradient shows which entry was blamed."""

    def __init__(self, prefix: str, outputs: Mapping[str, Rows]) -> None:
        super().__init__()
        self.prefix = prefix
        self.rows = nn.ParameterDict(
            {name: nn.Parameter(torch.tensor(rows)) for name, rows in outputs.items()}
        )

    def forward(self, observation: Tensors, state: HiddenState) -> tuple[Tensors, HiddenState]:
        seen = observation["state"]
        out = {output(self.prefix, name): x[seen] for name, x in self.rows.items()}
        return out, HiddenState()


class Sloped(Table):
    """A critic of one continuous action: `value` plus `slope` times the action, by state."""

    def forward(self, observation: Tensors, state: HiddenState) -> tuple[Tensors, HiddenState]:
        out, state = super().forward(observation, state)
        late = next(x for name, x in observation.items() if name.startswith("action."))
        return out | {"value": out["value"] + out.pop("slope") * late}, state


class Total(nn.Module):
    """Remembers the sum of all states since it was fresh; outputs are that sum times a row."""

    def __init__(self, prefix: str, outputs: Mapping[str, Sequence[float]]) -> None:
        super().__init__()
        self.prefix = prefix
        self.rows = nn.ParameterDict(
            {name: nn.Parameter(torch.tensor([row])) for name, row in outputs.items()}
        )

    def forward(self, observation: Tensors, state: HiddenState) -> tuple[Tensors, HiddenState]:
        total = state["total"] + observation["state"][:, None].float()
        out = {output(self.prefix, name): total @ x for name, x in self.rows.items()}
        return out, HiddenState(total=total)


def table(prefix: str = "", /, **outputs: Rows) -> CustomNetwork:
    """A network that looks its outputs up."""
    return CustomNetwork(Table(prefix, outputs))


def sloped(prefix: str = "", /, **outputs: Rows) -> CustomNetwork:
    """A critic that is linear in a continuous action."""
    return CustomNetwork(Sloped(prefix, outputs))


def totalling(prefix: str = "", /, **outputs: Sequence[float]) -> CustomNetwork:
    """A network that remembers a sum."""
    return CustomNetwork(Total(prefix, outputs), {"total": (1,)})


policy_table, q_table = partial(table, POLICY), partial(table, Q)
policy_totalling, q_totalling = partial(totalling, POLICY), partial(totalling, Q)


def prepare(agent: Any, chunk: Experience) -> Any:
    """What an actor–critic agent learns from."""
    return advantages(agent.network, chunk, agent.config.gamma, agent.config.lam)


def entries(network: Any, name: str) -> nn.Parameter:
    """The parameters behind an output of one of these networks."""
    found = network.get_parameter(f"module.rows.{name}")
    assert isinstance(found, nn.Parameter)
    return found


def slopes(network: Any, name: str) -> list[float]:
    """Their gradient, flat."""
    grad = entries(network, name).grad
    assert grad is not None
    return grad.flatten().tolist()


@dataclass(frozen=True)
class Column:
    """What one environment showed and answered; flags are the rows where they are true."""

    state: Sequence[int]  # one more than there are rewards
    reward: Sequence[float]
    action: Sequence[int] = ()  # zeros, if not given
    log_prob: Sequence[float] = ()  # zeros, if not given
    terminated: Collection[int] = ()
    truncated: Collection[int] = ()
    invalid: Collection[int] = ()
    first: Collection[int] = (0,)
    replaced: Mapping[int, int] = field(default_factory=dict)  # final states by row


def record(*columns: Column, **hidden: Tensor) -> Experience:
    """The columns side by side, with hidden states `[T + 1, B, ...]` by name."""
    steps = len(columns[0].reward)

    def beside(rows: list[Sequence[float]], dtype: torch.dtype) -> Tensor:
        return torch.tensor([list(row) or [0] * steps for row in rows], dtype=dtype).T.contiguous()

    def where(rows: list[Collection[int]], length: int = steps) -> Tensor:
        return beside([[t in row for t in range(length)] for row in rows], torch.bool)

    finals = [[c.replaced.get(t, -1) for t in range(steps)] for c in columns]
    return Experience(
        observation={"state": beside([c.state for c in columns], torch.int64)},
        hidden_state=dict(hidden),
        first=where([c.first for c in columns], steps + 1),
        action={"action": beside([c.action for c in columns], torch.int64)},
        memo={"log_prob": beside([c.log_prob for c in columns], torch.float32)},
        reward=beside([c.reward for c in columns], torch.float32),
        terminated=where([c.terminated for c in columns]),
        truncated=where([c.truncated for c in columns]),
        valid=~where([c.invalid for c in columns]),
        final_observation={"state": torch.tensor(finals).T.contiguous()},
        replaced=where([c.replaced for c in columns]),
    )


def masked(chunk: Experience, *allowed: Sequence[int]) -> Experience:
    """The record with an action mask in each row, for all environments alike."""
    mask = torch.tensor(allowed)[:, None].expand(-1, chunk.reward.shape[1], -1)
    return chunk._replace(observation=chunk.observation | {"action_mask": mask})


def column(x: Tensor) -> list[float]:
    """The numbers of the first environment."""
    return x[:, 0].flatten().tolist()
