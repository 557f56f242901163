"""V-trace against loops in plain Python and against A2C where the policy is the one that acted."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from gymnasium.spaces import Discrete
from torch import Tensor
from worked import Column, column, entries, masked, prepare, record, slopes
from worked import policy_table as table
from worked import policy_totalling as totalling

from operant.agents.a2c import A2CConfig, ActorCritic
from operant.agents.optimizer import total
from operant.agents.vtrace import ActorCriticVTrace, VTraceConfig
from operant.core.experience import Experience
from operant.core.protocols import Network
from operant.core.schedule import Schedule
from operant.memory.rollout import RolloutCache
from operant.networks.custom import CustomNetwork

GAMMA = 0.9
HALF = math.log(0.5)
WORTH = [5.0, 7.0, 10.0, 20.0]
LOGITS = [[0.0, 0.0], [0.5, -0.5], [1.0, 0.2], [-0.3, 0.0]]
PLAIN: dict[str, Any] = {"gamma": GAMMA, "max_grad_norm": 0, "optimizer": "adam"}


def network() -> CustomNetwork:
    return table(value=[[v] for v in WORTH], action=LOGITS)


def vtrace(net: Network | None = None, **settings: Any) -> ActorCriticVTrace:
    config, net = VTraceConfig(**PLAIN | settings), network() if net is None else net
    return ActorCriticVTrace(net, {"action": Discrete(2)}, RolloutCache(2), config, seed=1)


def eventful(steps: int = 12, envs: int = 4) -> Experience:
    """Ends of either kind, final observations, wasted steps and actions of another policy."""
    generator = torch.Generator().manual_seed(3)
    kind, other = torch.rand(2, steps, envs, generator=generator)
    terminated, truncated = kind < 0.15, kind > 0.85
    return record(*[Column([0] * (steps + 1), [0.0] * steps)] * envs)._replace(
        observation={"state": torch.randint(4, (steps + 1, envs), generator=generator)},
        final_observation={"state": torch.randint(4, (steps, envs), generator=generator)},
        action={"action": torch.randint(2, (steps, envs), generator=generator)},
        memo={"log_prob": -2 * torch.rand(steps, envs, generator=generator)},
        reward=torch.randn(steps, envs, generator=generator),
        terminated=terminated,
        truncated=truncated,
        replaced=(terminated | truncated) & (other < 0.5),
        valid=(other < 0.9) | terminated | truncated,
    )


def slow(chunk: Experience, config: VTraceConfig) -> tuple[Tensor, Tensor]:
    """Targets and advantages, from the last row to the first of each environment."""
    steps, envs = chunk.reward.shape
    target, advantage = torch.zeros(2, steps, envs)
    for b in range(envs):
        later = 0.0  # v - V of the next row
        for t in reversed(range(steps)):
            now, after = (int(chunk.observation["state"][t + i, b]) for i in (0, 1))
            if chunk.replaced[t, b]:
                after = int(chunk.final_observation["state"][t, b])
            logits = torch.tensor(LOGITS[now])
            chance = logits.softmax(0)[chunk.action["action"][t, b]]
            ratio = float(chance) / math.exp(chunk.memo["log_prob"][t, b])
            gamma = 0.0 if chunk.terminated[t, b] else config.gamma
            lost = t + 1 < steps and not chunk.valid[t + 1, b]
            on = config.lam * (not (chunk.terminated[t, b] or chunk.truncated[t, b] or lost))
            reward, value = float(chunk.reward[t, b]), WORTH[now]
            delta = min(config.rho, ratio) * (reward + gamma * WORTH[after] - value)
            q = reward + gamma * (WORTH[after] + on * later)
            later = delta + gamma * on * min(config.c, ratio) * later
            target[t, b] = value + later
            advantage[t, b] = min(config.rho_policy, ratio) * (q - value)
    return target, advantage


@pytest.mark.parametrize(
    "settings",
    [{}, {"rho": 1.5, "c": 0.7, "rho_policy": 2.0}, {"lam": 0.8}],
    ids=["as in the paper", "other bounds", "with lambda"],
)
def test_targets_and_advantages_are_those_of_a_loop(settings: dict[str, Any]) -> None:
    agent, chunk = vtrace(**settings), eventful()
    batch = agent.prepare(chunk)
    target, advantage = slow(chunk, agent.config)
    torch.testing.assert_close(batch.target, target)
    torch.testing.assert_close(batch.advantage, advantage)
    assert chunk.replaced.sum() >= 5
    assert (~chunk.valid).sum() >= 2


@pytest.mark.parametrize("lam", [0.0, 0.6, 1.0])
def test_where_the_policy_is_the_one_that_acted_it_is_a2c(lam: float) -> None:
    agent, chunk = vtrace(lam=lam), eventful()
    now = torch.tensor(LOGITS).log_softmax(-1)[chunk.observation["state"][:-1]]
    acted = now.gather(-1, chunk.action["action"].unsqueeze(-1)).squeeze(-1)
    chunk = chunk._replace(memo={"log_prob": acted})
    other = ActorCritic(
        network(), {"action": Discrete(2)}, RolloutCache(2), A2CConfig(**PLAIN, lam=lam), seed=1
    )
    ours, theirs = agent.prepare(chunk), prepare(other, chunk)
    torch.testing.assert_close(ours.target, theirs.target)
    torch.testing.assert_close(ours.advantage, theirs.advantage)


@pytest.mark.parametrize(
    ("ends", "worth"),
    [
        ({"truncated": (0,), "replaced": {0: 3}}, GAMMA * 20),
        ({"truncated": (0,)}, GAMMA * 7),
        ({"terminated": (0,), "replaced": {0: 3}}, 0.0),
        ({"truncated": (0,), "invalid": (1,)}, GAMMA * 7),
    ],
    ids=["cut, already reset", "cut", "terminated", "cut, resets next step"],
)
def test_an_end_bootstraps_from_what_the_step_led_to(ends: dict[str, Any], worth: float) -> None:
    rows = Column([0, 1, 2], [1.0, 3.0], log_prob=[HALF, HALF], **ends)
    batch = vtrace().prepare(record(rows))
    assert batch.target[0, 0].item() == pytest.approx(1 + worth)
    assert batch.advantage[0, 0].item() == pytest.approx(1 + worth - 5)


def test_an_action_that_the_policy_would_not_take_leaves_the_value_and_moves_nothing() -> None:
    agent = vtrace(table(value=[[5.0]] * 3, action=[[-1e4, 0.0]] * 3), entropy_coef=0.0)
    batch = agent.prepare(record(Column([0, 1, 2], [9.0, 9.0], log_prob=[HALF, HALF])))
    assert column(batch.target) == [5.0, 5.0]
    assert column(batch.advantage) == [0.0, 0.0]


def test_an_action_that_became_far_likelier_counts_as_once() -> None:
    batch = vtrace().prepare(record(Column([0, 1], [9.0], log_prob=[-200.0], terminated=(0,))))
    assert (batch.target.item(), batch.advantage.item()) == pytest.approx((9.0, 4.0))


def test_values_are_asked_anew_whatever_acting_remembers() -> None:
    chunk = record(Column([0, 1, 2], [1.0, 2.0], log_prob=[HALF, HALF]))
    stale = chunk._replace(memo=chunk.memo | {"value": torch.full((2, 1), 99.0)})
    # The targets are returns, whatever the values are; what is above expectation is not.
    found, expected = vtrace().prepare(stale).advantage, vtrace().prepare(chunk).advantage
    torch.testing.assert_close(found, expected)
    assert column(found)[1] == pytest.approx(2 + GAMMA * 10 - 7)


def test_a_wasted_step_weighs_nothing_in_an_update() -> None:
    agent = vtrace()
    rows = Column([0, 3, 1], [6.0, 1e3], log_prob=[HALF, HALF], terminated=(0,), invalid=(1,))
    agent.memory.store(record(rows))
    metrics = agent.update()
    assert metrics["value_loss"] == pytest.approx(0.5)
    assert metrics["policy_gradient_loss"] == pytest.approx(-HALF)
    assert agent.steps == 1


def test_losses_are_those_worked_by_hand() -> None:
    agent = vtrace(table(value=[[5.0], [7.0]] * 2, action=[[0.0, 0.0]] * 4), entropy_coef=2.0)
    # The first action was twice as likely when it was taken, the second half as likely.
    log_prob = [0.0, math.log(0.25)]
    rows = Column([0, 1, 2], [1.0, 2.0], log_prob=log_prob, terminated=(0, 1))
    batch = agent.prepare(record(rows))
    losses, metrics = agent.compute_loss(batch, batch.valid)
    assert losses["policy"].item() == pytest.approx(-HALF * (0.5 * (1 - 5) + (2 - 7)) / 2)
    errors = 0.5 * (1 - 5), 2 - 7  # of the targets, 5 - 2 and 2
    assert losses["value"].item() == pytest.approx(0.5 * 0.5 * sum(e**2 for e in errors) / 2)
    assert losses["entropy"].item() == pytest.approx(-2 * math.log(2))
    expected = (0.5 - 1 - HALF + 2 - 1 - math.log(2)) / 2
    assert metrics["approx_kl"].item() == pytest.approx(expected)


def test_no_gradient_flows_through_targets_weights_or_advantages() -> None:
    agent = vtrace(value_coef=1.0, entropy_coef=0.0)
    batch = agent.prepare(record(Column([0, 1, 2], [1.0, 2.0], log_prob=[HALF, -0.2])))
    total(agent.compute_loss(batch, batch.valid)[0]).backward()
    value = [0.5 * (v - t) for v, t in zip(WORTH, column(batch.target), strict=False)]
    assert slopes(agent.network, "value") == pytest.approx([*value, 0.0, 0.0])
    first = 0.5 * column(batch.advantage)[0]
    assert slopes(agent.network, "action")[:2] == pytest.approx([-0.5 * first, 0.5 * first])


@pytest.mark.parametrize(("reward", "sign"), [(6.0, 1), (4.0, -1)])
def test_an_action_better_than_expected_becomes_likelier(reward: float, sign: int) -> None:
    agent = vtrace(lr=Schedule(0.01), entropy_coef=0.0)
    agent.memory.store(record(Column([0, 1], [reward], [1], [HALF], terminated=(0,))))
    agent.update()
    logits = entries(agent.network, "action")[0]
    assert (logits[1] - logits[0]).item() == pytest.approx(sign * 0.02, rel=1e-3)
    value = entries(agent.network, "value")[0].item()
    assert value == pytest.approx(5 + sign * 0.01, rel=1e-4)


def test_a_forbidden_action_has_no_part_in_the_ratio() -> None:
    agent = vtrace(table(value=[[5.0]] * 2, action=[[0.0, 50.0]] * 2))
    rows = record(Column([0, 1], [9.0], terminated=(0,)))  # it was the only one allowed
    batch = agent.prepare(masked(rows, [1, 0], [1, 1]))
    assert batch.advantage.item() == pytest.approx(4.0)


def test_memory_is_that_of_the_policy_as_it_is_and_fresh_where_an_episode_begins() -> None:
    agent = vtrace(totalling(value=[1.0], action=[0.0, 0.0]))
    stale = torch.full((4, 1, 1), 100.0)
    rows = Column([2, 4, 3, 1], [0.0] * 3, log_prob=[HALF] * 3, terminated=(1,), first=(0, 2))
    batch = agent.prepare(record(rows, total=stale))
    # Values are 2, 2 + 4, then 3 and 3 + 1 in the next episode.
    assert column(batch.target) == pytest.approx([0.0, 0.0, GAMMA * 4], abs=1e-5)
    assert column(batch.advantage) == pytest.approx([-2.0, -6.0, GAMMA * 4 - 3])


def test_advantages_are_standardised_if_asked() -> None:
    agent = vtrace(normalize_advantage=True)
    log_prob = [HALF, torch.tensor(LOGITS[1]).log_softmax(0)[1].item()]
    rows = Column([0, 1, 2], [9.0, 7.0], [0, 1], log_prob, terminated=(0, 1))
    batch = agent.prepare(record(rows))
    assert column(batch.advantage) == pytest.approx([4.0, 0.0], abs=1e-5)
    loss = agent.compute_loss(batch, batch.valid)[0]["policy"].item()
    assert loss == pytest.approx(-(log_prob[0] - log_prob[1]) / 2)


def test_nothing_is_learned_before_a_chunk_is_whole_and_it_is_learned_from_once() -> None:
    agent = vtrace()
    assert agent.update() == {}
    agent.memory.store(record(Column([0, 1, 2], [1.0, 2.0], log_prob=[HALF, HALF])))
    assert agent.update()["n_updates"] == 1
    assert agent.update() == {}
