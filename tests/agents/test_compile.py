"""Compiled learning gives the losses and gradients of plain learning, for batches of any size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from operant.core import tree
from operant.recipes.compose import compose
from operant.session.build import build
from operant.session.preview import try_out

# By name: the agent and its run, whose chunks have 128 steps.
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "choices": (
        "ppo",
        {
            "env": {"id": "CartPole-v1", "num_envs": 8},
            "network": {"separate": True},
            "agent": {"length": 16, "minibatch": 40, "entropy_coef": 0.01},
        },
    ),
    "numbers": (
        "a2c",
        {
            "env": {"id": "Pendulum-v1", "num_envs": 8},
            "network": {"normalize": True, "activation": "relu"},
            "agent": {"length": 16},
        },
    ),
}


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def gradients(agent: Any, loss: Any, batch: Any, valid: Tensor | None) -> list[Tensor]:
    losses, metrics = loss(batch, valid)
    found = torch.autograd.grad(sum(losses.values()), tuple(agent.network.parameters()))
    return [*found, *losses.values(), *metrics.values()]


@pytest.mark.parametrize("name", CASES)
def test_compiled_losses_and_gradients_are_those_of_plain_learning(name: str) -> None:
    algorithm, settings = CASES[name]
    config = try_out(compose(algorithm, {**settings, "compile": "on"}, recipe="none")[0]).config
    container = build(config)
    agent: Any = container.agent
    try:
        agent.memory.store(container.explorer.update())
        agent.update()  # compiles, and leaves the first weights behind
        batch = agent.prepare(container.explorer.update())
        with torch._dynamo.config.patch(error_on_recompile=True):
            for size in (3, 8, 16):
                rows = tree.index(batch, slice(0, size))
                if name == "choices":  # as PPO gives them: shuffled steps, all of which count
                    rows, valid = tree.map(lambda x: x.flatten(0, 1).clone()[None], rows), None
                else:
                    valid = rows.valid
                fast = gradients(agent, agent._loss, rows, valid)
                plain = gradients(agent, agent.compute_loss, rows, valid)
                for one, other in zip(fast, plain, strict=True):
                    assert one.dtype == other.dtype
                    assert torch.allclose(one, other, rtol=1e-4, atol=1e-6), (size, one - other)
    finally:
        container.close()
