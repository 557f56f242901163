"""Compiled learning gives the losses and gradients of plain learning, for batches of any size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._dynamo.utils import counters

from operant.containers.local import LocalWorker
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


def learner(name: str) -> LocalWorker:
    algorithm, settings = CASES[name]
    config = compose(algorithm, {**settings, "compile": "on"}, recipe="none")[0]
    return build(try_out(config).config)


def some(name: str, batch: Any, size: int) -> tuple[Any, Tensor | None]:
    """The first steps of a batch and which of them count, as this agent learns from them."""
    rows = tree.index(batch, slice(0, size))
    if name == "choices":  # shuffled steps, all of which count
        return tree.map(lambda x: x.flatten(0, 1).clone()[None], rows), None
    return rows, rows.valid


def compiled_by(call: Callable[[], object]) -> int:
    """How many programs the call has compiled."""
    counters.clear()
    call()
    return counters["stats"]["unique_graphs"]


@pytest.mark.parametrize("name", CASES)
def test_compiled_losses_and_gradients_are_those_of_plain_learning(name: str) -> None:
    container = learner(name)
    agent: Any = container.agent
    try:
        agent.memory.store(container.explorer.update())
        assert compiled_by(agent.update) == 1  # and the first weights are left behind
        batch = agent.prepare(container.explorer.update())
        with torch._dynamo.config.patch(error_on_recompile=True):
            for size in (3, 8, 16):
                case = some(name, batch, size)
                fast = gradients(agent, agent._loss, *case)
                plain = gradients(agent, agent.compute_loss, *case)
                torch.testing.assert_close(fast, plain, rtol=1e-4, atol=1e-6)
    finally:
        container.close()
