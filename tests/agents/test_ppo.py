"""PPO against hand-worked numbers."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from gymnasium.spaces import Discrete
from worked import Column, entries, prepare, record, slopes
from worked import policy_table as table
from worked import policy_totalling as totalling

from operant.agents.a2c import A2CConfig, ActorCritic
from operant.agents.ppo import PPO, PPOConfig
from operant.core.experience import Experience
from operant.core.protocols import Network
from operant.core.schedule import Schedule
from operant.memory.rollout import RolloutCache
from operant.networks.custom import CustomNetwork

GAMMA = 0.9
PLAIN: dict[str, Any] = {"gamma": GAMMA, "max_grad_norm": 0, "normalize_advantage": False}


def ppo(network: Network, **settings: Any) -> PPO:
    config = PPOConfig(**(PLAIN | settings))
    return PPO(network, {"action": Discrete(2)}, RolloutCache(1), config, seed=1)


def even(states: int = 3) -> CustomNetwork:
    return table(value=[[0.0]] * states, action=[[0.0, 0.0]] * states)


def once(ratio: float, advantage: float) -> Experience:
    """One step whose action is now `ratio` times as likely as when it was taken."""
    log_prob = math.log(0.5 / ratio)
    return record(Column([0, 1], [advantage], log_prob=[log_prob], terminated=(0,)))


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "fixed"),
    [
        (1.0, 2.0, -2.0, False),  # has not moved
        (1.5, 2.0, -1.2 * 2, True),  # good and far enough: nothing more to gain
        (0.5, 2.0, -0.5 * 2, False),  # good but less likely than before: pulled back
        (0.5, -2.0, 0.8 * 2, True),  # bad and far enough
        (1.5, -2.0, 1.5 * 2, False),  # bad but more likely than before: pulled back
    ],
)
def test_the_ratio_is_clipped_on_the_side_that_the_advantage_rewards(
    ratio: float, advantage: float, loss: float, fixed: bool
) -> None:
    network = even()
    agent = ppo(network)
    losses, _ = agent.compute_loss(prepare(agent, once(ratio, advantage)))
    losses["policy"].backward()
    assert losses["policy"].item() == pytest.approx(loss)
    expected = 0.0 if fixed else -advantage * ratio * 0.5
    assert slopes(network, "action")[0] == pytest.approx(expected)


def test_the_clip_is_as_wide_as_configured() -> None:
    agent = ppo(even(), clip=0.4)
    losses, metrics = agent.compute_loss(prepare(agent, once(1.5, 2.0)))
    assert losses["policy"].item() == pytest.approx(-1.4 * 2)
    assert metrics["clip_fraction"].item() == 1.0


def test_the_divergence_is_estimated_from_the_ratio() -> None:
    agent = ppo(even())
    _, metrics = agent.compute_loss(prepare(agent, once(1.1, 2.0)))
    assert metrics["approx_kl"].item() == pytest.approx(0.1 - math.log(1.1), rel=1e-4)
    assert metrics["clip_fraction"].item() == 0.0


def test_value_and_entropy_losses_are_those_worked_by_hand() -> None:
    agent = ppo(table(value=[[5.0], [0.0]], action=[[0.0, 0.0]] * 2), value_coef=3, entropy_coef=2)
    losses, _ = agent.compute_loss(prepare(agent, once(1.0, 1.0)))
    assert losses["value"].item() == pytest.approx(3 * 0.5 * (1 - 5) ** 2)
    assert losses["entropy"].item() == pytest.approx(-2 * math.log(2))


def collected(agent: ActorCritic | PPO) -> Experience:
    """Eight steps of one environment, acted by the agent itself."""
    state = torch.arange(8) % 3
    action, memo = agent.act({"state": state})
    return record(
        Column(
            [*state.tolist(), 0],
            [1.0, -2.0, 0.5, 3.0, -1.0, 0.0, 2.0, 1.0],
            action=action["action"].tolist(),
            log_prob=memo.tensors["log_prob"].tolist(),
            truncated=(3,),
            terminated=(5,),
        )
    )


def test_in_the_first_pass_the_ratio_is_one_and_the_gradient_that_of_a2c() -> None:
    grads = []
    kinds: Any = ((PPO, PPOConfig(**PLAIN)), (ActorCritic, A2CConfig(**PLAIN)))
    for kind, config in kinds:
        network = table(value=[[1.0], [2.0], [3.0]], action=[[0.0, 1.0], [0.5, 0.0], [0.0, 0.0]])
        agent = kind(network, {"action": Discrete(2)}, RolloutCache(8), config, seed=1)
        batch = prepare(agent, collected(agent))
        batch = batch._replace(advantage=torch.arange(8.0)[:, None])
        agent.compute_loss(batch)[0]["policy"].backward()
        grads.append(entries(network, "action").grad)
    torch.testing.assert_close(grads[0], grads[1])


def test_a_policy_that_has_not_moved_gains_its_mean_advantage() -> None:
    agent = ppo(even())
    batch = prepare(agent, collected(agent))
    losses, metrics = agent.compute_loss(batch)
    assert losses["policy"].item() == pytest.approx(-batch.advantage.mean().item())
    assert (metrics["approx_kl"].item(), metrics["clip_fraction"].item()) == (0.0, 0.0)


def test_advantages_are_standardised_within_each_minibatch() -> None:
    agent = ppo(even(4), normalize_advantage=True)
    log_prob = [math.log(0.5), math.log(0.25)]  # so that the ratios are 1 and 2
    column = Column([0, 1, 2], [1.0, 5.0], log_prob=log_prob, terminated=(0, 1))
    batch = prepare(agent, record(column))
    gain = (1 * -1 + 1.2 * 1) / 2  # the second is clipped
    assert agent.compute_loss(batch)[0]["policy"].item() == pytest.approx(-gain)


def test_each_epoch_visits_every_minibatch() -> None:
    agent = ppo(even(), epochs=3, minibatch=2)
    agent.memory.store(collected(agent))
    assert agent.update()["n_updates"] == 3 * 4


def test_a_policy_that_has_moved_too_far_ends_the_epochs() -> None:
    agent = ppo(even(), epochs=10, minibatch=8, lr=Schedule(0.5), target_kl=0.01)
    agent.memory.store(collected(agent))
    assert agent.update()["n_updates"] == 2  # in the second epoch it is seen to have moved


@pytest.mark.parametrize(("advantage", "sign"), [(2.0, 1), (-2.0, -1)])
def test_an_action_better_than_expected_becomes_likelier(advantage: float, sign: int) -> None:
    network = even()
    agent = ppo(network, lr=Schedule(0.01), epochs=1)
    agent.memory.store(once(1.0, advantage))
    agent.update()
    logits = entries(network, "action")[0].tolist()
    assert logits == pytest.approx([sign * 0.01, -sign * 0.01], rel=1e-3)


def test_targets_stay_those_of_the_chunk_through_all_epochs() -> None:
    network = table(value=[[0.0], [10.0]], action=[[0.0, 0.0]] * 2)
    agent = ppo(network, lam=0.0, epochs=300, lr=Schedule(0.1))
    agent.memory.store(record(Column([0, 1], [1.0], truncated=(0,))))
    agent.update()
    assert entries(network, "value").flatten().tolist() == pytest.approx([10.0, 10.0], rel=0.01)
    assert entries(network, "value")[1].item() == 10.0


def test_a_good_action_gains_no_more_than_the_clip_in_many_epochs() -> None:
    network = even()
    agent = ppo(network, epochs=50, lr=Schedule(0.01))
    agent.memory.store(once(1.0, 2.0))
    agent.update()
    chance = entries(network, "action")[0].softmax(-1)[0].item()
    assert 0.5 * 1.2 <= chance < 0.5 * 1.35  # past the clip only what Adam's momentum carries


@pytest.mark.parametrize("recurrent", [False, True])
def test_a_wasted_step_moves_nothing(recurrent: bool) -> None:
    column = Column([0, 3, 1, 2], [1, 0, 3], terminated=(0, 2), invalid=(1,), first=(0, 2))
    after = []
    for noise in (0.0, 1e6):
        network = totalling(value=[0.1], action=[0.2, 0.1]) if recurrent else even(4)
        agent = ppo(network, normalize_advantage=True)
        batch = prepare(
            agent, record(column, **{k: x[:, None] for k, x in network.initial_state(4).items()})
        )
        batch.target[1] = batch.advantage[1] = noise
        agent.learn(batch)
        after.append([p.tolist() for p in network.parameters()])
    assert after[0] == after[1]


def test_a_network_with_memory_learns_from_whole_environments() -> None:
    network = totalling(value=[1.0], action=[0.0, 0.0])
    agent = ppo(network, epochs=2, minibatch=3, lr=Schedule(0.0))
    columns = [Column([b, b, b, b], [0, 0, 0], terminated=(0, 1, 2), first=(0,)) for b in range(4)]
    agent.memory.store(record(*columns, total=torch.zeros(4, 4, 1)))
    metrics = agent.update()
    # Environment b has seen b, 2b, 3b: half the mean square of those over all of them.
    assert metrics["n_updates"] == 2 * 4
    assert metrics["value_loss"] == pytest.approx(0.5 * (1 + 4 + 9) / 3 * (1 + 4 + 9) / 4)


@pytest.mark.parametrize("target_kl", [0.0, 0.01])
def test_a_chunk_in_which_nothing_was_decided_teaches_nothing(target_kl: float) -> None:
    network = even()
    agent = ppo(network, target_kl=target_kl)
    agent.memory.store(record(Column([0, 1], [0.0], invalid=(0,))))
    metrics = agent.update()
    assert entries(network, "value").abs().max().item() == 0
    assert all(math.isfinite(x) for x in metrics.values())
