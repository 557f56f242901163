"""Noise on the actions of a deterministic policy: its size, its bounds, and what it remembers."""

from __future__ import annotations

import math
import pickle
from typing import Any

import pytest
import torch
from agent_parts import create
from gymnasium.spaces import Box
from torch import Tensor

from operant.core import tree
from operant.core.errors import UsageError
from operant.core.experience import HiddenState
from operant.core.protocols import Rows
from operant.core.spaces import Space, Spaces
from operant.networks.assemble import NetworkConfig

SEEN: dict[str, Space] = {"x": Box(-1, 1, (2,))}
ACTIONS: dict[str, Space] = {"push": Box(-1, 1, (2,)), "turn": Box(-1, 1, (1, 2))}
OU: dict[str, Any] = {"exploration": "ornstein-uhlenbeck"}


def noisy(lstm: int = 0, **settings: Any) -> Any:
    """An agent of two actions that is past acting at random, and proposes zero everywhere."""
    config = NetworkConfig(hidden=(4,), lstm=lstm)
    agent = create("ddpg", Spaces(SEEN, ACTIONS), config, {"learning_starts": 0} | settings)
    for name, weight in agent.network.named_parameters():
        if name.startswith("outputs"):
            weight.data.zero_()
    return agent


def acted(agent: Any, rows: int, steps: int = 1, state: Any = None) -> tuple[list[Any], Any]:
    """Actions of some steps, and the state after them."""
    found, state = [], agent.initial_state(rows) if state is None else state
    for _ in range(steps):
        action, memo = agent.act({"x": torch.ones(rows, 2)}, state)
        found.append(action)
        state = memo.hidden_state
    return found, state


@pytest.mark.parametrize("lstm", [0, 3])
def test_gaussian_noise_has_the_deviation_it_was_given(lstm: int) -> None:
    (action,), _ = acted(noisy(lstm, exploration_scale=0.1), 5000)
    assert action["turn"].shape == (5000, 1, 2)
    for x in action.values():
        assert x.flatten(1).std(0).tolist() == pytest.approx([0.1, 0.1], rel=0.05)
        assert x.mean().item() == pytest.approx(0.0, abs=0.01)


def test_uniform_noise_fills_its_range_evenly() -> None:
    (action,), _ = acted(noisy(exploration="uniform", exploration_scale=0.3), 5000)
    push = action["push"]
    assert (push.min().item(), push.max().item()) == pytest.approx((-0.3, 0.3), abs=0.001)
    assert push.std().item() == pytest.approx(0.3 / math.sqrt(3), rel=0.03)


@pytest.mark.parametrize("kind", ["gaussian", "uniform", "ornstein-uhlenbeck"])
def test_each_dimension_may_have_a_scale_of_its_own(kind: str) -> None:
    agent = noisy(exploration=kind, exploration_scale=(0.1, 0.0, 0.2, 0.4))
    (action,), _ = acted(agent, 5000)
    found = torch.cat([x.flatten(1) for x in action.values()], 1).std(0)
    spread = 1 / math.sqrt(3) if kind == "uniform" else 1.0
    expected = [spread * x for x in (0.1, 0.0, 0.2, 0.4)]
    assert found.tolist() == pytest.approx(expected, rel=0.08)  # the largest is cut at one


def test_scales_of_another_count_are_refused() -> None:
    with pytest.raises(UsageError, match=r"exploration_scale = \[0.1, 0.2\].*4 dimensions.*or 4"):
        noisy(exploration_scale=(0.1, 0.2))


def test_actions_stay_within_their_bounds() -> None:
    (action,), _ = acted(noisy(exploration_scale=5.0), 1000)
    assert (action["push"].min().item(), action["push"].max().item()) == (-1.0, 1.0)


def test_at_first_actions_are_uniform_and_then_around_the_policys() -> None:
    agent = noisy(learning_starts=3000)
    actions, _ = acted(agent, 3000, steps=2)
    spread = [x["push"].std().item() for x in actions]
    assert spread == pytest.approx([1 / math.sqrt(3), 0.1], rel=0.05)


@pytest.mark.parametrize("settings", [{}, OU])
def test_without_exploring_there_is_no_noise_and_nothing_is_counted(settings: Any) -> None:
    agent = noisy(**settings)
    state = HiddenState({k: x + 0.5 for k, x in agent.initial_state(3).items()})
    action, memo = agent.act({"x": torch.ones(3, 2)}, state, explore=False)
    assert max(x.abs().max().item() for x in action.values()) == 0
    assert memo.hidden_state.keys() == state.keys()
    assert all(torch.equal(x, state[k]) for k, x in memo.hidden_state.items())
    assert agent.actor.acted == 0


def test_correlated_noise_goes_on_from_where_it_was() -> None:
    agent = noisy(**OU, exploration_scale=0.1, exploration_theta=0.2)
    generator = torch.Generator()
    generator.set_state(agent.actor.generator.get_state())
    push, turn = torch.zeros(2, 2), torch.zeros(2, 1, 2)
    for action in acted(agent, 2, steps=5)[0]:
        push = 0.8 * push + 0.1 * torch.randn(2, 2, generator=generator)
        turn = 0.8 * turn + 0.1 * torch.randn(2, 1, 2, generator=generator)
        torch.testing.assert_close(action["push"], push)
        torch.testing.assert_close(action["turn"], turn)


def test_correlated_noise_spreads_as_its_theory_says() -> None:
    _, state = acted(noisy(**OU, exploration_scale=0.05), 4000, steps=60)
    expected = 0.05 / math.sqrt(1 - (1 - 0.15) ** 2)
    assert state["selector.noise.push"].std().item() == pytest.approx(expected, rel=0.05)


def test_correlated_noise_begins_anew_where_an_episode_does() -> None:
    agent, other = (noisy(**OU, exploration_scale=0.1) for _ in range(2))
    _, state = acted(agent, 2, steps=4)
    acted(other, 2, steps=4)
    begun = state.reset(torch.tensor([True, False]))
    (action,), _ = acted(agent, 2, state=begun)
    (going_on,), _ = acted(other, 2, state=state)
    assert torch.equal(action["push"][1], going_on["push"][1])
    kept = 0.85 * state["selector.noise.push"][0]
    torch.testing.assert_close(going_on["push"][0] - action["push"][0], kept)


@pytest.mark.parametrize("lstm", [0, 3])
@pytest.mark.parametrize("settings", [{}, OU])
def test_parts_of_a_batch_explore_as_the_whole(settings: Any, lstm: int) -> None:
    agent = noisy(lstm, **settings)
    _, state = acted(agent, 8, steps=3)
    sent = pickle.dumps(agent.actor)
    begun = torch.arange(8) % 3 == 0
    whole, after = agent.act({"x": torch.ones(8, 2)}, state.reset(begun))
    for rows in (Rows(0, 3, 8), Rows(3, 8, 8)):
        actor, place = pickle.loads(sent), slice(rows.start, rows.stop)
        actor.rows = rows
        part = tree.index((HiddenState(state), begun), place)
        action, memo = actor.act(
            {"x": torch.ones(8, 2)[place]}, HiddenState(part[0]).reset(part[1])
        )
        both = (action, dict(memo.hidden_state)), tree.index((whole, after.hidden_state), place)
        assert listed(both[0]) == listed(both[1])


def listed(x: Any) -> list[tuple[str, list[Any]]]:
    return [(name, leaf.tolist()) for name, leaf in tree.leaves(x) if isinstance(leaf, Tensor)]


def test_in_numpy_actions_are_those_of_torch() -> None:
    agent, other = noisy(), noisy()
    assert agent.actor.numpy_forward is not None
    other.actor.numpy_forward = None
    for one, two in zip(acted(agent, 5, 3)[0], acted(other, 5, 3)[0], strict=True):
        for name in ACTIONS:
            torch.testing.assert_close(one[name], two[name])
