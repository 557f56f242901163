"""SAC and the parts of an action: twin critics learn only their sum; masks limit the entropy."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from worked import Column, masked, policy_table, q_table, record, sloped

from operant.agents.sac import SAC, SACConfig
from operant.core.experience import Experience
from operant.core.spaces import Space
from operant.memory.replay import ExperienceReplay
from operant.networks.custom import CustomNetwork
from operant.networks.ensemble import Ensemble

FIXED = -20.0  # a log standard deviation so small that the action is the mean's tanh
NO_BONUS = 1e-9  # a temperature at which entropy counts for nothing


def sac(
    actor: CustomNetwork, critics: list[CustomNetwork], spaces: dict[str, Space], **settings: Any
) -> SAC:
    config = SACConfig(gamma=1.0, alpha=NO_BONUS, learning_starts=0, **settings)
    return SAC(actor, Ensemble(critics), spaces, ExperienceReplay(9, 0, seed=1), config, seed=1)


def step(**action: Any) -> Experience:
    """One step without a reward, from state 0 to state 1."""
    return record(Column([0, 1], [0.0]))._replace(
        action={name: torch.tensor([[x]]) for name, x in action.items()}
    )


def target(agent: SAC, chunk: Experience) -> float:
    return agent.targets(chunk, agent.noise(chunk, 1)).item()


MULTI: dict[str, Space] = {"a": MultiDiscrete([2, 3])}
NAMED: dict[str, Space] = {"a": Discrete(2), "b": Discrete(3)}
MIXED: dict[str, Space] = {"amount": Box(-1, 1, (1,)), "choice": Discrete(2)}
CHANCES = [0.25, 0.75], [0.5, 0.3, 0.2]


def both(rows: list[float]) -> list[list[float]]:
    """The same in either state."""
    return [rows, rows]


def multi(critics: list[tuple[list[float], list[float]]], **settings: Any) -> SAC:
    """One action of two parts; critics by what each part's choices are worth."""
    logits = [math.log(p) for part in CHANCES for p in part]
    made = [q_table(a=both(a + b)) for a, b in critics]
    return sac(policy_table(a=both(logits)), made, MULTI, **settings)


def named(critics: list[tuple[list[float], list[float]]]) -> SAC:
    """The same as two actions."""
    logits = {k: both([math.log(p) for p in part]) for k, part in zip("ab", CHANCES, strict=True)}
    made = [q_table(a=both(a), b=both(b)) for a, b in critics]
    return sac(policy_table(**logits), made, NAMED)


def mixed(critics: list[tuple[float, list[float]]]) -> SAC:
    """A continuous part worth `value` whatever it is, and two choices that are equally likely."""
    made = [
        sloped("q.", value=both([x]), slope=both([0.0]), choice=both(rows)) for x, rows in critics
    ]
    return sac(policy_table(amount=both([0.0, FIXED]), choice=both([0.0, 0.0])), made, MIXED)


def test_critics_that_agree_on_every_action_give_that_target_however_they_split_it() -> None:
    split = [([3.0] * 2, [7.0] * 3), ([7.0] * 2, [3.0] * 3)]
    assert target(multi(split), step(a=[0, 0])) == pytest.approx(10.0)
    assert target(named(split), step(a=0, b=0)) == pytest.approx(10.0)
    halves = mixed([(3.0, [7.0, 7.0]), (7.0, [3.0, 3.0])])
    assert target(halves, step(amount=[0.0], choice=0)) == pytest.approx(10.0)


def test_of_two_critics_the_one_that_expects_less_of_the_whole_action_counts() -> None:
    critics = [([1.0, 5.0], [2.0, 0.0, 4.0]), ([9.0, 3.0], [1.0, 1.0, -3.0])]
    a, b = CHANCES
    pairs = list(itertools.product(range(2), range(3)))
    expected = min(sum(a[i] * b[j] * (q[i] + r[j]) for i, j in pairs) for q, r in critics)
    assert target(multi(critics), step(a=[0, 0])) == pytest.approx(expected)
    assert target(named(critics), step(a=0, b=0)) == pytest.approx(expected)


def test_of_one_discrete_part_the_lower_critic_counts_choice_by_choice() -> None:
    agent = mixed([(1.0, [4.0, 0.0]), (2.0, [1.0, 6.0])])
    expected = 0.5 * min(1 + 4, 2 + 1) + 0.5 * min(1 + 0, 2 + 6)
    assert target(agent, step(amount=[0.0], choice=0)) == pytest.approx(expected)


@pytest.mark.parametrize("make", [multi, named])
def test_the_policy_follows_the_critic_that_counts(make: Any) -> None:
    agent = make([([1.0, 2.0], [0.0] * 3), ([50.0, 40.0], [0.0] * 3)])
    chunk = step(a=[0, 0]) if make is multi else step(a=0, b=0)
    losses, _ = agent.actor_loss(chunk, {})
    slope = torch.autograd.grad(losses["actor"], list(agent.network.parameters()))[0]
    # Of the expected worth by the second logit: p (1 - p) times the difference of the choices.
    assert slope[0, :2].tolist() == pytest.approx([0.1875, -0.1875], rel=1e-4)


def tempered(agent: SAC, chunk: Experience) -> float:
    """What the temperature's loss aims at, from the loss of one gradient step."""
    agent.log_alpha.data.fill_(1.0)  # the loss is log α times entropy less target
    metrics = agent.descend_on(chunk, None, frozenset({"alpha"}))
    return float(metrics["entropy"] - metrics["ent_coef_loss"])


def test_the_target_entropy_is_a_share_of_that_of_the_allowed_choices() -> None:
    agent = multi([([0.0] * 2, [0.0] * 3)] * 2)
    for mask, allowed in (([1, 1, 1, 0, 1], 2 * 2), ([0, 1, 0, 1, 0], 1), ([0] * 5, 2 * 3)):
        chunk = masked(step(a=[1, 1]), mask, [1] * 5)
        assert tempered(agent, chunk) == pytest.approx(0.3 * math.log(allowed), abs=1e-6)


def test_each_row_has_a_target_entropy_of_its_own_and_a_wasted_one_none() -> None:
    agent = multi([([0.0] * 2, [0.0] * 3)] * 2)
    agent.window = agent.length = 3
    chunk = record(Column([0, 1, 0, 1], [0.0] * 3, invalid=(1,)))
    chunk = chunk._replace(action={"a": torch.ones(3, 1, 2, dtype=torch.int64)})
    chunk = masked(chunk, [1, 1, 1, 0, 0], [1] * 5, [1, 0, 1, 1, 1], [1] * 5)
    assert tempered(agent, chunk) == pytest.approx(0.3 * (math.log(2) + math.log(3)) / 2)


def test_a_part_without_a_mask_keeps_its_target_entropy() -> None:
    chunk = step(amount=[0.0], choice=0)
    mask = torch.tensor([[[1, 0]]] * 2)
    seen = chunk.observation | {"action_mask.choice": mask}
    agent = mixed([(0.0, [0.0, 0.0])] * 2)
    assert tempered(agent, chunk) == pytest.approx(0.3 * math.log(2) - 1, rel=1e-4)
    assert tempered(agent, chunk._replace(observation=seen)) == pytest.approx(-1, rel=1e-4)


def test_where_nothing_can_be_chosen_the_temperature_stays() -> None:
    agent = multi([([0.0] * 2, [0.0] * 3)] * 2)
    chunk = masked(step(a=[1, 1]), [0, 1, 0, 1, 0], [1] * 5)
    before = agent.log_alpha.item()
    for _ in range(100):
        agent.descend_on(chunk, None, agent.due())
    assert agent.log_alpha.item() == before


def test_a_target_entropy_that_was_given_is_taken_as_it_is() -> None:
    agent = multi([([0.0] * 2, [0.0] * 3)] * 2, target_entropy=0.4)
    chunk = masked(step(a=[1, 1]), [0, 1, 0, 1, 1], [1] * 5)
    assert tempered(agent, chunk) == pytest.approx(0.4, rel=1e-4)
