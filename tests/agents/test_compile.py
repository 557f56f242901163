"""Compiled learning gives the metrics and gradients of plain learning, for batches of any size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._dynamo.utils import counters
from worked import prepare

from operant.containers.local import LocalWorker
from operant.core import tree
from operant.session.build import build
from operant.session.compose import compose
from operant.session.try_out import try_out

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
    "windows": (
        "acer",
        {
            "env": {"id": "CartPole-v1", "num_envs": 8},
            "network": {"hidden": [16, 16]},
            "agent": {"length": 16, "learning_starts": 20, "batch_size": 4},
        },
    ),
    "values": (
        "dqn",
        {
            "env": {"id": "CartPole-v1", "num_envs": 1},
            "network": {"hidden": [16, 16]},
            "agent": {"learning_starts": 20, "prioritized": True, "n_step": 3, "dueling": True},
        },
    ),
    "distributions": (
        "rainbow",
        {
            "env": {"id": "CartPole-v1", "num_envs": 1},
            "network": {"hidden": [16, 16]},
            "agent": {"learning_starts": 20, "value_min": 0, "value_max": 100},
        },
    ),
    "deterministic": (
        "td3",
        {
            "env": {"id": "Pendulum-v1", "num_envs": 1},
            "network": {"hidden": [16, 16], "activation": "relu"},
            "agent": {"learning_starts": 20, "batch_size": 16, "policy_every": 1},
        },
    ),
    "soft": (
        "sac",
        {
            "env": {"id": "Pendulum-v1", "num_envs": 1},
            "network": {"hidden": [16, 16], "activation": "relu"},
            "agent": {"learning_starts": 20, "batch_size": 16},
        },
    ),
}
NEAR: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-6}


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def learner(name: str, compile: str = "on") -> LocalWorker:
    algorithm, settings = CASES[name]
    config = compose(algorithm, {**settings, "compile": compile}, recipe="none")[0]
    return build(try_out(config))


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


@pytest.mark.parametrize("name", ["choices", "numbers"])
def test_compiled_metrics_and_gradients_are_those_of_plain_learning(name: str) -> None:
    container = learner(name)
    agent: Any = container.agent
    try:
        agent.memory.store(container.explorer.update())
        assert compiled_by(agent.update) == 1  # and the first weights are left behind
        batch = prepare(agent, container.explorer.update())
        with torch._dynamo.config.patch(error_on_recompile=True):
            for size in (3, 8, 16):
                case = some(name, batch, size)
                step = agent.descents[0]
                found, expected = step.program(*case), step.differentiate(*case)
                torch.testing.assert_close(found, expected, **NEAR)
    finally:
        container.close()


@pytest.mark.parametrize(("name", "programs"), [("values", 1), ("distributions", 1), ("soft", 2)])
def test_compiled_learning_from_a_replay_is_plain_learning(name: str, programs: int) -> None:
    container = learner(name)
    agent: Any = container.agent
    try:
        assert compiled_by(lambda: container.run(40)) == programs
        drawn = agent.memory.sample(agent.config.batch_size, agent.length)
        cases: list[tuple[Any, ...]] = [(drawn.experience, drawn.weight)]
        if name == "soft":
            noise = agent.noise(drawn.experience, agent.length)
            cases = [(*cases[0], noise), (drawn.experience, agent.noise(drawn.experience, 1))]
        with torch._dynamo.config.patch(error_on_recompile=True):
            for step, case in zip(agent.descents, cases, strict=True):
                assert step.program is not step.differentiate
                found, expected = step.program(*case), step.differentiate(*case)
                torch.testing.assert_close(found, expected, **NEAR)
    finally:
        container.close()


def test_one_program_learns_from_new_steps_and_from_replayed_windows() -> None:
    container = learner("windows")
    agent: Any = container.agent
    try:
        assert compiled_by(lambda: container.run(512)) == 1
        assert agent.updates > 4
        step = agent.descents[0]
        with torch._dynamo.config.patch(error_on_recompile=True):
            for batch in (agent.memory.newest(16), agent.memory.sample(4, 16).experience):
                found, expected = step.program(batch), step.differentiate(batch)
                torch.testing.assert_close(found, expected, **NEAR)
    finally:
        container.close()


def test_a_compiled_run_learns_as_a_plain_one() -> None:
    found = []
    for compile in ("on", "off"):
        container = learner("soft", compile)
        before = flat(container.agent.network)
        container.run(60)
        found.append(flat(container.agent.network))
        container.close()
    fast, plain = found
    way = (plain - before).norm()
    # Adam turns the rounding of gradients that are nearly zero into steps of full length.
    assert float((fast - plain).norm() / way) < 0.02


@pytest.mark.parametrize("name", ["distributions", "soft"])
def test_a_compiled_run_goes_on_exactly_from_its_state(name: str) -> None:
    whole, other = learner(name), learner(name)
    state = deepcopy(whole.run(40).state_dict())
    whole.run(20, initial_step=40)
    other.load_state_dict(state)
    begin = flat(other.agent.network)
    other.run(20, initial_step=40)
    assert torch.equal(flat(other.agent.network), flat(whole.agent.network))
    assert not torch.equal(flat(other.agent.network), begin)
    for container in (whole, other):
        container.close()


def flat(network: Any) -> Tensor:
    """All weights of a network."""
    return torch.cat([p.detach().flatten() for p in network.parameters()])
