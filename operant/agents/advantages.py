"""A rollout with what actor–critic algorithms learn from: advantages and value targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from operant.agents.optimizer import averaged
from operant.agents.unroll import unroll
from operant.core import tree
from operant.core.experience import Experience, HiddenState, Metrics, Tensors, substate
from operant.core.namedarraytuple import namedarraytuple
from operant.core.protocols import Network
from operant.ops import policy, returns

Batch = namedarraytuple(
    "Batch", "observation hidden_state first action log_prob advantage target valid"
)


@torch.no_grad()
def advantages(
    network: Network, chunk: Experience, gamma: float, lam: float, name: str = ""
) -> Any:
    """Generalised advantages and value targets beside what they belong to: a Batch `[T, B]`.

    `name` tells the hidden state of the network behind the value from that of others.
    """
    chunk = tree.to(chunk, next(network.parameters()).device)
    value, next_value = values(network, chunk, name)
    discount = gamma * ~chunk.terminated
    trace = lam * ~chunk.cut
    advantage = returns.gae(chunk.reward, value, next_value, discount, trace)
    return batch_of(chunk, advantage, target=advantage + value)


def batch_of(chunk: Experience, advantage: Tensor, target: Tensor) -> Any:
    """A chunk's own rows, with the advantages and value targets of its steps: a Batch `[T, B]`."""
    steps = len(chunk.reward)
    return Batch(
        observation=tree.index(chunk.observation, slice(0, steps)),
        hidden_state=tree.index(dict(chunk.hidden_state), slice(0, steps)),
        first=chunk.first[:steps],
        action=chunk.action,
        log_prob=chunk.memo["log_prob"],
        advantage=advantage,
        target=target,
        valid=chunk.valid,
    )


@torch.no_grad()
def values(network: Network, chunk: Experience, name: str = "") -> tuple[Tensor, Tensor]:
    """Value of each row and of what its action led to, `[T, B]` each, from output `value`."""
    if "value" in chunk.memo:  # acting has seen every row but the last
        last = tree.index((chunk.observation, dict(chunk.hidden_state)), -1)
        after = network(last[0], HiddenState(last[1]).reset(chunk.first[-1]), None, ("value",))[0]
        value = torch.cat([chunk.memo["value"], after["value"].T])
    else:
        value = unroll(network, chunk, ("value",), name=name)["value"].squeeze(-1)
    next_value = value[1:].clone()
    if chunk.replaced.any():
        # After these steps a new episode began; bootstrap from the final observation instead.
        final = tree.index(chunk.final_observation, chunk.replaced)
        after = substate(chunk.hidden_state, name)
        state = HiddenState({k: x[1:][chunk.replaced] for k, x in after.items()})
        next_value[chunk.replaced] = network(final, state, None, ("value",))[0]["value"].squeeze(-1)
    return value[:-1], next_value


def rollout_metrics(learned: Sequence[Tensors], batch: Any) -> Metrics:
    """Mean metrics of an update's gradient steps, and how well values explained the returns."""
    value = batch.target - batch.advantage
    explained = policy.explained_variance(value, batch.target, batch.valid)
    return averaged(learned) | {"explained_variance": float(explained)}
