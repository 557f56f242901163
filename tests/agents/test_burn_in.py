"""Burn-in: the first steps of a window only bring the hidden state up to date."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from agent_parts import create
from gymnasium.spaces import Box, Discrete
from torch import Tensor
from worked import Column, q_totalling, record

from operant.agents.dqn import DQN, DQNConfig
from operant.agents.unroll import unroll
from operant.core.experience import Experience, HiddenState
from operant.core.spaces import Space, Spaces
from operant.memory.replay import ExperienceReplay
from operant.networks.assemble import NetworkConfig

GAMMA = 0.9
ONE: dict[str, Space] = {"action": Discrete(2)}
PUSH: dict[str, Space] = {"amount": Box(-1, 1, (1,))}
SPACES = Spaces({"x": Box(-1, 1, (2,))}, {**ONE, **PUSH})


def dqn(**settings: Any) -> DQN:
    config = DQNConfig(gamma=GAMMA, learning_starts=0, **settings)
    return DQN(q_totalling(action=[1.0, 2.0]), ONE, ExperienceReplay(99, 0, 1), config, seed=1)


def test_a_loss_is_of_the_steps_after_burn_in_with_all_that_was_seen_before() -> None:
    column = Column([1, 2, 3, 4], [1e6, 1e6, 0.0], first=(), truncated=(2,))
    chunk = record(column, total=torch.full((1, 1, 1), 10.0))
    losses, metrics = dqn(burn_in=2, sequence=1).compute_loss(chunk)
    # After 10 + 1 + 2 + 3 = 16 the first action is worth 16, and after 20 the second is worth 40.
    error = abs(16 - GAMMA * 2 * 20)
    assert losses["q"].item() == pytest.approx(error - 0.5)
    assert metrics["td_error"].tolist() == pytest.approx([error])


def test_a_window_has_its_burn_in_before_what_is_learned_from() -> None:
    agent = dqn(burn_in=5, sequence=3, n_step=2)
    assert (agent.learned_rows, agent.length) == ((5, 8), 5 + 3 + 1)


def test_a_network_without_memory_has_no_burn_in() -> None:
    spaces = Spaces({"x": Box(-1, 1, (2,))}, ONE)
    agent = create("dqn", spaces, NetworkConfig(hidden=(4,)), {"burn_in": 5})
    assert (agent.learned_rows, agent.length) == ((0, 1), 1)


def test_a_window_that_has_ended_before_its_burn_in_weighs_nothing() -> None:
    columns = [
        Column([1, 2, 3], [0.0, 1e6], terminated=(0,), invalid=(1,), first=(0, 2)),
        Column([1, 2, 3], [0.0, 1.0], terminated=(1,)),
    ]
    chunk = record(*columns, total=torch.zeros(1, 2, 1))
    losses, metrics = dqn(burn_in=1, sequence=1).compute_loss(chunk)
    assert losses["q"].item() == pytest.approx(abs(3 - 1) - 0.5)
    assert metrics["td_error"].tolist() == pytest.approx([0.0, 2.0])


LSTM = NetworkConfig(hidden=(4,), lstm=3)
BURN, LEARNED, ENVS = 3, 2, 4


def recurrent(name: str, **settings: Any) -> Any:
    actions = {"dqn": ONE, "ddpg": PUSH}.get(name, SPACES.action)
    return create(name, Spaces(SPACES.observation, actions), LSTM, settings)


def window(agent: Any) -> Experience:
    """Random, with an episode that begins within the burn-in and one where it ends."""
    random, steps = torch.Generator().manual_seed(1), BURN + LEARNED
    columns = [Column([0] * (steps + 1), [1.0] * steps, first=(b,)) for b in range(ENVS)]
    hidden = {k: torch.randn(1, *x.shape) for k, x in agent.initial_state(ENVS).items()}
    amount = torch.rand(steps, ENVS, 1, generator=random)
    chunk = record(*columns, **hidden)
    seen = {"x": torch.randn(steps + 1, ENVS, 2, generator=random)}
    return chunk._replace(observation=seen, action=chunk.action | {"amount": amount})


def slowly(network: Any, batch: Experience, name: str, late: dict[str, Tensor]) -> list[Any]:
    """Outputs of each learned row, one step after another, without a gradient in burn-in."""
    prefix = f"{name}." if name else ""
    found = {k.removeprefix(prefix): x[0] for k, x in batch.hidden_state.items()}
    state, out = HiddenState({k: found[k] for k in network.initial_state(1)}), []
    for t in range(BURN + LEARNED):
        seen = {k: x[t] for k, x in batch.observation.items()} | {k: x[t] for k, x in late.items()}
        with torch.set_grad_enabled(t >= BURN):
            given, state = network(seen, state.reset(batch.first[t]))
        out.append(given)
    return out[BURN:]


ROLES = [("dqn", ""), *((name, role) for name in ("ddpg", "sac") for role in ("actor", "critic"))]


@pytest.mark.parametrize(("name", "role"), ROLES)
def test_values_and_gradients_are_those_of_steps_one_by_one(name: str, role: str) -> None:
    agent = recurrent(name)
    network = agent.critics.network if role == "critic" else agent.network
    batch = window(agent)
    late = {"action.amount": batch.action["amount"]} if role == "critic" else {}
    rows = (BURN, BURN + LEARNED)
    fast = unroll(network, batch, None, rows, role, {k: x[BURN:] for k, x in late.items()})
    slow = slowly(network, batch, role, late)
    grads = []
    for output in (fast, {k: torch.stack([x[k] for x in slow]) for k in fast}):
        total = torch.stack([(x**2).sum() for x in output.values()]).sum()
        grads.append(torch.autograd.grad(total, list(network.parameters()), allow_unused=True))
        torch.testing.assert_close(total, torch.stack([(x**2).sum() for x in fast.values()]).sum())
    for one, other in zip(*grads, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("name", ["dqn", "ddpg", "sac"])
def test_nothing_of_the_burn_in_is_learned_from(name: str) -> None:
    agent = recurrent(name, burn_in=BURN, sequence=LEARNED)
    batch, moved = window(agent), []
    for noise in (0.0, 1e6):
        batch.reward[:BURN] = noise
        agent.generator = torch.Generator().manual_seed(1)
        losses, _ = agent.compute_loss(batch)
        moved.append([x.item() for x in losses.values()])
    assert moved[0] == moved[1]


@pytest.mark.parametrize("name", ["dqn", "ddpg", "sac"])
def test_an_agent_with_burn_in_learns_from_its_replay(name: str) -> None:
    settings = {"burn_in": BURN, "sequence": LEARNED, "learning_starts": 0, "batch_size": 4}
    agent = recurrent(name, **settings, updates_per_step=1.0, prioritized=True)
    batch = window(agent)
    hidden = {k: x.expand(BURN + LEARNED + 1, *x.shape[1:]) for k, x in batch.hidden_state.items()}
    final = {"x": batch.observation["x"][1:]}
    agent.memory.store(batch._replace(hidden_state=hidden, final_observation=final))
    metrics = agent.update()
    assert agent.updates == (BURN + LEARNED) * ENVS
    assert all(torch.tensor(x).isfinite() for x in metrics.values())
