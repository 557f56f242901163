"""DDPG, TD3 and HDDPG against hand-worked numbers and a step written in plain torch."""

from __future__ import annotations

import math
from copy import deepcopy
from typing import Any

import pytest
import torch
from agent_parts import create
from gymnasium.spaces import Box, Discrete, MultiBinary
from torch import Tensor, nn
from worked import Column, entries, policy_table, policy_totalling, record, sloped, slopes

from operant.agents.critics import Critics
from operant.agents.ddpg import DDPG, DDPGConfig, HDDPGConfig, TD3Config
from operant.core.errors import UsageError
from operant.core.experience import Experience
from operant.core.schedule import Schedule
from operant.core.spaces import Space, Spaces
from operant.memory.replay import ExperienceReplay
from operant.memory.replay_settings import make_replay
from operant.networks.assemble import NetworkConfig
from operant.networks.custom import CustomNetwork
from operant.networks.ensemble import Ensemble

GAMMA = 0.9
ONE: dict[str, Space] = {"amount": Box(-1, 1, (1,))}
PLAIN: dict[str, Any] = {"gamma": GAMMA, "learning_starts": 0, "batch_size": 4}
MEANS = [[0.3], [-0.4]]
# Either critic is lower somewhere: the second at the action of state 0, the first at state 1.
FIRST: dict[str, Any] = {"value": [[1.0], [2.0]], "slope": [[3.0], [4.0]]}
SECOND: dict[str, Any] = {"value": [[1.5], [1.5]], "slope": [[-2.0], [-1.0]]}


def ddpg(*critics: dict[str, Any], means: Any = MEANS, **settings: Any) -> DDPG:
    """An agent whose critics are linear in the action; two of them make it TD3's target."""
    count: Any = len(critics) or 1
    config = DDPGConfig(critics=count, **(PLAIN | settings))
    made = [sloped(**rows) for rows in critics or (FIRST,)]
    critic: Any = Ensemble(made) if len(made) > 1 else made[0]
    memory = make_replay(config, Spaces({}, ONE), seed=1)
    judge = Critics(critic, ONE, config.critics)
    return DDPG(policy_table(amount=means), judge, ONE, memory, config, seed=1)


def moved(*columns: Column, amounts: Any = None, **hidden: Tensor) -> Experience:
    chunk = record(*columns, **hidden)
    given = torch.zeros(*chunk.reward.shape, 1) if amounts is None else torch.tensor(amounts)
    return chunk._replace(action={"amount": given.view(*chunk.reward.shape, 1)})


def worth(agent: DDPG, chunk: Experience) -> Tensor:
    return agent.targets(chunk, agent.ahead(chunk))


def q(critic: dict[str, Any], state: int, action: float) -> float:
    """A critic's answer."""
    answer: float = critic["value"][state][0] + critic["slope"][state][0] * action
    return answer


def best(state: int) -> float:
    """The policy's action."""
    return math.tanh(MEANS[state][0])


NEXT = q(FIRST, 1, best(1))


@pytest.mark.parametrize(
    ("ended", "expected"),
    [({}, 1 + GAMMA * NEXT), ({"truncated": (0,)}, 1 + GAMMA * NEXT), ({"terminated": (0,)}, 1.0)],
)
def test_the_target_of_one_step_is_the_critics_answer_to_the_policys_action(
    ended: Any, expected: float
) -> None:
    target = worth(ddpg(), moved(Column([0, 1], [1.0], **ended)))
    assert target.item() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (Column([0, 0, 0, 1], [1, 2, 4]), 1 + GAMMA * (2 + GAMMA * (4 + GAMMA * NEXT))),
        (Column([0, 0, 1, 0], [1, 2, 1e6], terminated=(1,)), 1 + GAMMA * 2),
        (Column([0, 0, 1, 0], [1, 2, 1e6], truncated=(1,)), 1 + GAMMA * (2 + GAMMA * NEXT)),
        (Column([0, 1, 0, 0], [1, 1e6, 1e6], invalid=(1,)), 1 + GAMMA * NEXT),  # lost
    ],
)
def test_the_target_of_three_steps(column: Column, expected: float) -> None:
    other = Column([1, 1, 1, 1], [0, 0, 0])
    target = worth(ddpg(n_step=3), moved(column, other))
    assert target[0].tolist() == pytest.approx([expected, GAMMA**3 * NEXT])


def test_targets_come_from_the_target_networks() -> None:
    agent, chunk = ddpg(FIRST, SECOND), moved(Column([0, 1], [1.0]))
    before = worth(agent, chunk).item()
    for weight in (*agent.network.parameters(), *agent.critics.network.parameters()):
        weight.data.fill_(1000.0)
    assert worth(agent, chunk).item() == pytest.approx(before)
    agent.policy_target.polyak_update(1.0)
    assert worth(agent, chunk).item() == pytest.approx(1 + GAMMA * min(2 + 4, 1.5 - 1))


def test_of_two_critics_the_lower_one_counts_row_by_row() -> None:
    chunk = moved(Column([0, 0], [1.0]), Column([0, 1], [1.0]))
    lower = [min(q(FIRST, s, best(s)), q(SECOND, s, best(s))) for s in (0, 1)]
    assert lower == [q(SECOND, 0, best(0)), q(FIRST, 1, best(1))]
    target = worth(ddpg(FIRST, SECOND), chunk)
    assert target[0].tolist() == pytest.approx([1 + GAMMA * x for x in lower])


def test_actions_in_targets_are_smoothed_by_clipped_noise() -> None:
    agent = ddpg(target_noise=1.0, target_noise_clip=0.25)
    chunk = moved(*[Column([0, 0], [1.0])] * 500)
    drawn = torch.randn(1, 500, 1, generator=deepcopy(agent.generator))
    ahead = agent.ahead(chunk)["amount"]
    torch.testing.assert_close(ahead, best(0) + drawn.clamp(-0.25, 0.25))
    assert (ahead - best(0)).abs().max().item() == pytest.approx(0.25)


def test_actions_in_targets_stay_within_their_bounds() -> None:
    agent = ddpg(means=[[5.0], [-5.0]], target_noise=1.0, target_noise_clip=0.5)
    columns = [Column([0, state], [1.0]) for state in (0, 1)] * 250
    ahead = agent.ahead(moved(*columns))["amount"]
    assert (ahead.min().item(), ahead.max().item()) == (-1.0, 1.0)


def test_each_critic_is_pulled_to_the_same_target_at_the_action_taken() -> None:
    columns = [Column([0, 1], [3.0], terminated=(0,)), Column([1, 0], [-2.0], terminated=(0,))]
    losses, _ = ddpg(FIRST, SECOND).compute_loss(
        moved(*columns, amounts=[0.1, -0.5]), torch.tensor([1.0, 0.25])
    )
    for name, critic in (("critic0", FIRST), ("critic1", SECOND)):
        errors = q(critic, 0, 0.1) - 3, q(critic, 1, -0.5) + 2
        expected = (errors[0] ** 2 / 2 + 0.25 * errors[1] ** 2 / 2) / 2
        assert losses[name].item() == pytest.approx(expected)


def test_the_policy_climbs_the_first_critic_over_the_whole_batch() -> None:
    agent = ddpg(FIRST, SECOND)
    losses, _ = agent.actor_loss(moved(*[Column([s, 0], [1.0]) for s in (0, 1, 1)]))
    mean = (q(FIRST, 0, best(0)) + 2 * q(FIRST, 1, best(1))) / 3
    assert losses["actor"].item() == pytest.approx(-mean)
    losses["actor"].backward()
    steep = [1 - best(0) ** 2, 1 - best(1) ** 2]
    assert slopes(agent.network, "amount") == pytest.approx([-3 * steep[0] / 3, -8 * steep[1] / 3])


class Pair(nn.Module):
    """A critic of two actions: 2 a + 5 b."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([[2.0], [5.0]]))

    def forward(self, observation: Any, state: Any) -> Any:
        both = torch.cat((observation["action.amount"], observation["action.other"]), -1)
        return {"value": both @ self.weight}, state


def test_actions_that_are_not_the_policys_own_stay_as_they_were_taken() -> None:
    config = DDPGConfig(**PLAIN)
    judged: dict[str, Space] = {**ONE, "other": Box(-1, 1, (1,))}
    critics = Critics(CustomNetwork(Pair()), judged, members=1)
    memory = ExperienceReplay(10, 0, seed=1)
    agent = DDPG(policy_table(amount=MEANS), critics, ONE, memory, config, seed=1)
    chunk = moved(Column([0, 1], [1.0]), amounts=[0.9])
    chunk = chunk._replace(action=chunk.action | {"other": torch.tensor([[[0.5]]])})
    losses, _ = agent.actor_loss(chunk)
    assert losses["actor"].item() == pytest.approx(-(2 * best(0) + 5 * 0.5))
    ahead = agent.ahead(chunk) | {"other": torch.tensor([[[-0.2]]])}
    assert agent.targets(chunk, ahead).item() == pytest.approx(1 + GAMMA * (2 * best(1) - 1))


def fill(agent: DDPG, *rewards: float, amount: float = 0.1) -> None:
    columns = [Column([0, 1], [reward], terminated=(0,)) for reward in rewards]
    agent.memory.store(moved(*columns, amounts=[amount] * len(rewards)))


def test_policy_and_targets_wait_for_every_second_gradient_step() -> None:
    agent = ddpg(FIRST, SECOND, policy_every=2, lr=0.1, tau=0.5)
    names = ("network", "policy_target", "critics")
    seen = []
    for _ in range(4):
        before = deepcopy([getattr(agent, name).state_dict() for name in names])
        fill(agent, 5.0)
        metrics = agent.update()
        after = [getattr(agent, name).state_dict() for name in names]
        moves = [str(one) != str(other) for one, other in zip(before, after, strict=True)]
        target = str(before[2]["target"]) != str(after[2]["target"])
        seen.append((*moves, target, "actor_loss" in metrics))
    assert seen == [(False, False, True, False, False), (True,) * 5] * 2


def test_target_networks_move_by_tau() -> None:
    agent = ddpg(tau=0.25, lr=Schedule(0.1))
    fill(agent, 5.0)
    agent.update()
    value = entries(agent.critics.network, "value")
    target = entries(agent.critics.target.network, "value")
    assert value[0].item() == pytest.approx(1.1)
    assert target[0].item() == pytest.approx(0.75 * 1.0 + 0.25 * 1.1)
    mean, slow = (entries(x, "amount") for x in (agent.network, agent.policy_target.network))
    assert mean[0].item() == pytest.approx(0.4)
    assert slow[0].item() == pytest.approx(0.75 * 0.3 + 0.25 * 0.4)


def test_the_policy_may_have_a_learning_rate_of_its_own() -> None:
    agent = ddpg(lr=0.1, policy_lr=0.01)
    fill(agent, 5.0)
    agent.update()
    mean = entries(agent.network, "amount")
    assert mean[0].item() == pytest.approx(0.31, abs=1e-5)


def learned(reward: float, **rates: Any) -> list[float]:
    """A critic's values after one step of gradient descent."""
    agent = ddpg(optimizer="sgd", lr=0.1, **rates)
    fill(agent, reward)
    agent.update()
    values: list[float] = entries(agent.critics.network, "value").tolist()
    return values


@pytest.mark.parametrize("reward", [5.1, -5.3])
def test_rates_of_one_change_no_bit(reward: float, monkeypatch: pytest.MonkeyPatch) -> None:
    found = learned(reward, increase_rate=1.0, decrease_rate=1.0)
    monkeypatch.setattr("operant.ops.value.hysteretic", lambda guess, target, *rates: target)
    assert found == learned(reward)


def test_a_value_rises_and_falls_at_rates_of_its_own() -> None:
    rates = {"increase_rate": 0.5, "decrease_rate": 0.25}
    above, below = q(FIRST, 0, 0.1) - 5.0, q(FIRST, 0, 0.1) + 5.0
    assert learned(5.0, **rates)[0] == pytest.approx([1.0 - 0.1 * 0.5 * above])
    assert learned(-5.0, **rates)[0] == pytest.approx([1.0 - 0.1 * 0.25 * below])


def test_without_a_rate_for_falls_no_value_falls() -> None:
    agent = ddpg(lr=0.1, increase_rate=1.0, decrease_rate=0.0)
    before = deepcopy(agent.critics.network.state_dict())
    fill(agent, -5.0, -100.0)
    agent.update()
    after = agent.critics.network.state_dict()
    assert all(torch.equal(after[name], x) for name, x in before.items())


def test_a_priority_is_how_wrong_the_critic_was_about_the_action_taken() -> None:
    agent = ddpg(batch_size=64, prioritized=True, priority_alpha=1.0, decrease_rate=0.1)
    fill(agent, 0.0, 4.0, amount=1.0)  # of which it expects 1 + 3
    agent.learn_from(agent.memory.sample(64), agent.due())
    drawn = agent.memory.sample(64)
    assert drawn.weight is not None
    # Wrong by 4 and by 0: only the first is drawn, until priorities change.
    assert drawn.experience.reward.abs().max().item() == 0


def plain_step(agent: DDPG, chunk: Experience, noise: Tensor, lr: float) -> dict[str, Tensor]:
    """TD3's step written out: what each network's weights must be after it."""
    actor, target = agent.network, agent.policy_target.network
    state, action = chunk.observation["x"], chunk.action["amount"]

    def mu(network: Any, x: Tensor) -> Tensor:
        found: Tensor = network({"x": x}, {}, None, None)[0]["policy.amount"].tanh()
        return found

    def judge(network: Any, x: Tensor, a: Tensor) -> Tensor:
        found: Tensor = network({"x": x, "action.amount": a}, {})[0]["value"][..., 0]
        return found

    with torch.no_grad():
        ahead = (mu(target, state[1]) + noise.clamp(-0.5, 0.5)).clamp(-1, 1)
        least = judge(agent.critics.target.network, state[1], ahead).min(-1).values
        y = chunk.reward[0] + GAMMA * ~chunk.terminated[0] * least
    online = agent.critics.network
    loss = sum(0.5 * (x - y).pow(2).mean() for x in judge(online, state[0], action[0]).unbind(-1))
    result = {}
    for name, network in (("critic", online), ("actor", actor)):
        weights = list(network.parameters())
        found = torch.autograd.grad(torch.as_tensor(loss), weights)
        with torch.no_grad():
            for weight, slope in zip(weights, found, strict=True):
                weight.sub_(lr * slope)
        result[name] = torch.cat([x.detach().flatten().clone() for x in weights])
        loss = -judge(online, state[0], mu(actor, state[0]))[..., 0].mean()
    return result


def test_an_update_is_that_of_td3_in_plain_torch() -> None:
    spaces = Spaces({"x": Box(-1, 1, (3,))}, ONE)
    settings = PLAIN | {"optimizer": "sgd", "lr": 0.1, "policy_every": 1}
    agent = create("td3", spaces, NetworkConfig(hidden=(8, 8)), settings)
    generator = torch.Generator().manual_seed(3)
    chunk = moved(*[Column([0, 1], [r], terminated=(0,) * (r > 2)) for r in (1.0, 2.0, 3.0)])
    chunk = chunk._replace(
        observation={"x": torch.randn(2, 3, 3, generator=generator)},
        action={"amount": torch.rand(1, 3, 1, generator=generator)},
    )
    noise = 0.2 * torch.randn(1, 3, 1, generator=deepcopy(agent.generator))
    expected = plain_step(deepcopy(agent), chunk, noise[0], lr=0.1)
    agent.descend_on(chunk, None, agent.due())
    for name, network in (("critic", agent.critics.network), ("actor", agent.network)):
        found = torch.cat([x.detach().flatten() for x in network.parameters()])
        torch.testing.assert_close(found, expected[name], rtol=1e-5, atol=1e-6)


def test_td3_is_ddpg_with_twin_critics_delay_and_smoothing() -> None:
    td3 = TD3Config()
    assert (td3.critics, td3.policy_every, td3.target_noise, td3.target_noise_clip) == (
        2,
        2,
        0.2,
        0.5,
    )
    assert (HDDPGConfig().increase_rate, HDDPGConfig().decrease_rate) == (1.0, 0.5)


@pytest.mark.parametrize("space", [Discrete(3), MultiBinary(2)])
def test_a_discrete_action_is_refused_by_name(space: Space) -> None:
    with pytest.raises(UsageError, match=r"'move'.*discrete action has none; use sac, ppo or dqn"):
        DDPG.output_space({"amount": Box(-1, 1, (1,)), "move": space})


def test_an_action_without_bounds_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match=r"'force'.*DDPG's actions lie between bounds.*use ppo"):
        DDPG.output_space({"force": Box(-math.inf, math.inf, (2,))})


def test_a_wasted_row_weighs_nothing_in_critic_and_policy() -> None:
    flags: Any = {"terminated": (0, 2), "invalid": (1,), "first": (0, 2)}
    config = DDPGConfig(**PLAIN, sequence=3)
    critics = Critics(sloped(**FIRST), ONE, members=1)
    actor = policy_totalling(amount=[0.1])
    agent = DDPG(actor, critics, ONE, ExperienceReplay(9, 0, seed=1), config, seed=1)
    hidden = {"actor.total": torch.tensor([[[4.0]]])}
    chunk = moved(Column([1, 0, 1, 1], [1, 1e6, 3], **flags), amounts=[0.2, 0.9, -0.2], **hidden)
    losses, _ = agent.compute_loss(chunk)
    errors = q(FIRST, 1, 0.2) - 1, q(FIRST, 1, -0.2) - 3
    assert losses["critic0"].item() == pytest.approx(sum(x**2 for x in errors) / 4)
    # The first row is fresh, as the third is: both have seen one.
    answers = [q(FIRST, 1, math.tanh(0.1))] * 2
    assert agent.actor_loss(chunk)[0]["actor"].item() == pytest.approx(-sum(answers) / 2)
