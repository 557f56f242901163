"""A rollout with what actor–critic algorithms learn from: advantages and value targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from operant.agents.optimizer import averaged
from operant.agents.unroll import unroll
from operant.core import tree
from operant.core.experience import Experience, HiddenState, Metrics, Tensors
from operant.core.namedarraytuple import namedarraytuple
from operant.core.protocols import Network
from operant.ops import policy, returns

Batch = namedarraytuple(
    "Batch", "observation hidden_state first action log_prob advantage target valid"
)


@torch.no_grad()
def advantages(network: Network, chunk: Experience, gamma: float, lam: float) -> Any:
    """Generalised advantages and value targets beside what they belong to: a Batch `[T, B]`."""
    chunk = tree.to(chunk, next(network.parameters()).device)
    value, next_value = values(network, chunk)
    discount = gamma * ~chunk.terminated
    trace = lam * ~chunk.cut
    advantage = returns.gae(chunk.reward, value, next_value, discount, trace)
    steps = len(chunk.reward)
    return Batch(
        observation=tree.index(chunk.observation, slice(0, steps)),
        hidden_state=tree.index(dict(chunk.hidden_state), slice(0, steps)),
        first=chunk.first[:steps],
        action=chunk.action,
        log_prob=chunk.memo["log_prob"],
        advantage=advantage,
        target=advantage + value,
        valid=chunk.valid,
    )


@torch.no_grad()
def values(network: Network, chunk: Experience) -> tuple[Tensor, Tensor]:
    """Value of each row and of what its action led to, `[T, B]` each, from output `value`."""
    if "value" in chunk.memo:  # acting has seen every row but the last
        last = tree.index((chunk.observation, dict(chunk.hidden_state)), -1)
        after = network(last[0], HiddenState(last[1]).reset(chunk.first[-1]), None, ("value",))[0]
        value = torch.cat([chunk.memo["value"], after["value"].T])
    else:
        value = unroll(network, chunk, ("value",))["value"].squeeze(-1)
    next_value = value[1:].clone()
    if chunk.replaced.any():
        # After these steps a new episode began; bootstrap from the final observation instead.
        final = tree.index(chunk.final_observation, chunk.replaced)
        state = HiddenState({k: x[1:][chunk.replaced] for k, x in chunk.hidden_state.items()})
        next_value[chunk.replaced] = network(final, state, None, ("value",))[0]["value"].squeeze(-1)
    return value[:-1], next_value


def rollout_metrics(learned: Sequence[Tensors], batch: Any) -> Metrics:
    """Mean metrics of an update's gradient steps, and how well values explained the returns."""
    value = batch.target - batch.advantage
    explained = policy.explained_variance(value, batch.target, batch.valid)
    return averaged(learned) | {"explained_variance": float(explained)}
