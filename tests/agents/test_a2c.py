"""Actor–critic against hand-worked numbers and a slow reference."""

from __future__ import annotations

import math
from copy import deepcopy
from typing import Any

import pytest
import torch
from gymnasium.spaces import Box, Discrete
from torch import Tensor, nn
from worked import Column, column, entries, masked, prepare, record, slopes
from worked import policy_table as table
from worked import policy_totalling as totalling

from operant.agents.a2c import A2CConfig, ActorCritic
from operant.agents.optimizer import total
from operant.agents.unroll import evaluate_actions
from operant.core.experience import Experience, HiddenState
from operant.core.protocols import Network
from operant.core.schedule import Schedule
from operant.memory.rollout import RolloutCache
from operant.networks.assemble import NetworkConfig, build_network

GAMMA, LAM = 0.9, 0.5
VALUE = [[5.0], [7.0], [10.0], [20.0]]
EVEN = [[0.0, 0.0]] * 4
HALF = math.log(0.5)


def agent_with(network: Network, **settings: Any) -> ActorCritic:
    plain: dict[str, Any] = {"gamma": GAMMA, "lam": LAM, "max_grad_norm": 0, "optimizer": "adam"}
    config = A2CConfig(**plain | settings)
    return ActorCritic(network, {"action": Discrete(2)}, RolloutCache(2), config, seed=1)


def critic(**settings: Any) -> ActorCritic:
    return agent_with(table(value=VALUE, action=EVEN), **settings)


def slow_advantages(chunk: Experience, value: list[float]) -> Tensor:
    """Rewards and values of each row's own episode, walked one by one."""
    steps, envs = chunk.reward.shape
    advantage = torch.zeros(steps, envs)
    for b in range(envs):
        for t in range(steps):
            weight = 1.0
            for k in range(t, steps):
                after = int(chunk.next_observation["state"][k, b])
                now = int(chunk.observation["state"][k, b])
                worth = 0.0 if chunk.terminated[k, b] else GAMMA * value[after]
                advantage[t, b] += weight * (float(chunk.reward[k, b]) + worth - value[now])
                weight *= GAMMA * LAM
                if chunk.terminated[k, b] or chunk.truncated[k, b]:
                    break
    return advantage


def eventful(steps: int = 12, envs: int = 4) -> Experience:
    """Episodes that end for either reason, with and without a replaced observation."""
    generator = torch.Generator().manual_seed(3)
    kind = torch.rand(steps, envs, generator=generator)
    terminated, truncated = kind < 0.2, kind > 0.8
    return record(*[Column([0] * (steps + 1), [0.0] * steps)] * envs)._replace(
        observation={"state": torch.randint(4, (steps + 1, envs), generator=generator)},
        final_observation={"state": torch.randint(4, (steps, envs), generator=generator)},
        reward=torch.randn(steps, envs, generator=generator),
        terminated=terminated,
        truncated=truncated,
        replaced=(terminated | truncated) & (torch.rand(steps, envs, generator=generator) < 0.5),
    )


@pytest.mark.parametrize(
    ("column_of", "expected"),
    [
        (Column([0, 1, 2], [1, 2]), 1 + GAMMA * 7 - 5 + GAMMA * LAM * (2 + GAMMA * 10 - 7)),
        (Column([0, 1, 2], [1, 2], terminated=(0,)), 1 - 5),
        (Column([0, 1, 2], [1, 2], truncated=(0,)), 1 + GAMMA * 7 - 5),
        (Column([0, 1, 2], [1, 2], truncated=(0,), replaced={0: 3}), 1 + GAMMA * 20 - 5),
        (Column([0, 1, 2], [1, 2], terminated=(0,), replaced={0: 3}), 1 - 5),
        (Column([0, 3, 1], [1, 1e6], truncated=(0,), invalid=(1,)), 1 + GAMMA * 20 - 5),
        (Column([0, 3, 1], [1, 1e6], terminated=(0,), invalid=(1,)), 1 - 5),
        (Column([0, 3, 1], [1, 1e6], invalid=(1,)), 1 + GAMMA * 20 - 5),
    ],
    ids=[
        "goes on: bootstraps and traces",
        "terminated: neither",
        "truncated: bootstraps, traces no further",
        "truncated, already reset: bootstraps from the final observation",
        "terminated, already reset: neither",
        "truncated, resets next step: bootstraps, not from the wasted step's reward",
        "terminated, resets next step: neither",
        "the next step was lost: bootstraps, traces no further",
    ],
)
def test_the_advantage_at_the_end_of_an_episode(column_of: Column, expected: float) -> None:
    batch = prepare(critic(), record(column_of))
    assert batch.advantage[0, 0].item() == pytest.approx(expected)


def test_the_last_row_bootstraps_from_what_comes_after_the_chunk() -> None:
    batch = prepare(critic(), record(Column([0, 1, 2], [1, 2])))
    assert batch.advantage[1, 0].item() == pytest.approx(2 + GAMMA * 10 - 7)


def test_advantages_over_many_episodes_are_those_of_a_walk_through_each() -> None:
    chunk = eventful()
    batch = prepare(critic(), chunk)
    torch.testing.assert_close(batch.advantage, slow_advantages(chunk, [5.0, 7.0, 10.0, 20.0]))
    assert chunk.replaced.sum() >= 5


def test_the_value_target_is_the_advantage_plus_the_value() -> None:
    batch = prepare(critic(lam=1.0), record(Column([0, 1, 2], [1, 2])))
    assert column(batch.target) == pytest.approx([1 + GAMMA * (2 + GAMMA * 10), 2 + GAMMA * 10])


def test_a_final_observation_is_judged_with_the_memory_of_its_own_episode() -> None:
    agent = agent_with(totalling(value=[1.0], action=[0.0, 0.0]))
    carried = torch.tensor([0.0, 2.0, 6.0])[:, None, None]  # after states 2, then 4
    column_of = Column([2, 4, 3], [0, 0], truncated=(1,), first=(0, 2), replaced={1: 5})
    batch = prepare(agent, record(column_of, total=carried))
    assert batch.advantage[1, 0].item() == pytest.approx(GAMMA * (2 + 4 + 5) - (2 + 4))


def test_a_final_observation_shown_in_a_wasted_row_keeps_the_memory_too() -> None:
    agent = agent_with(totalling(value=[1.0], action=[0.0, 0.0]))
    carried = torch.tensor([0.0, 2.0, 7.0, 0.0])[:, None, None]
    chunk = record(
        Column([2, 5, 3, 1], [0, 0, 0], truncated=(0,), invalid=(1,), first=(0, 2)), total=carried
    )
    batch = prepare(agent, chunk)
    assert batch.advantage[0, 0].item() == pytest.approx(GAMMA * (2 + 5) - 2)
    assert batch.advantage[2, 0].item() == pytest.approx(GAMMA * (3 + 1) - 3)


def test_memory_is_fresh_where_an_episode_begins() -> None:
    agent = agent_with(totalling(value=[1.0], action=[0.0, 0.0]))
    stale = torch.full((3, 1, 1), 100.0)
    chunk = record(Column([2, 4, 3], [0, 0], terminated=(0,), first=(0, 1)), total=stale)
    batch = prepare(agent, chunk)
    assert column(batch.target - batch.advantage) == [2.0, 4.0]
    assert evaluate_actions(agent.network, agent.distribution, batch)[2][:, 0].tolist() == [
        2.0,
        4.0,
    ]


def test_memory_goes_on_from_the_chunk_before() -> None:
    agent = agent_with(totalling(value=[1.0], action=[0.0, 0.0]))
    carried = torch.full((3, 1, 1), 100.0)
    batch = prepare(agent, record(Column([2, 4, 3], [0, 0], first=()), total=carried))
    assert column(batch.target - batch.advantage) == [102.0, 106.0]


def losses_of(agent: ActorCritic, *columns: Column) -> dict[str, float]:
    batch = prepare(agent, record(*columns))
    return {name: x.item() for name, x in agent.compute_loss(batch, batch.valid)[0].items()}


def test_losses_are_those_worked_by_hand() -> None:
    agent = critic(value_coef=3.0, entropy_coef=2.0)
    losses = losses_of(agent, Column([0, 1, 2], [1, 2], terminated=(0, 1)))
    assert losses["policy"] == pytest.approx(-HALF * ((1 - 5) + (2 - 7)) / 2)
    assert losses["value"] == pytest.approx(3 * 0.5 * ((1 - 5) ** 2 + (2 - 7) ** 2) / 2)
    assert losses["entropy"] == pytest.approx(-2 * math.log(2))


def test_a_loss_without_weight_moves_nothing() -> None:
    agent = critic(value_coef=0.0, entropy_coef=0.0)
    batch = prepare(agent, record(Column([0, 1, 2], [1, 2])))
    total(agent.compute_loss(batch, batch.valid)[0]).backward()
    assert entries(agent.network, "value").grad is None


def test_a_wasted_step_weighs_nothing_in_any_loss() -> None:
    one = losses_of(critic(), Column([0, 1], [1], terminated=(0,)))
    two = losses_of(critic(), Column([0, 3, 1], [1, 1e6], terminated=(0,), invalid=(1,)))
    assert two == pytest.approx(one)
    assert one["policy"] == pytest.approx(-HALF * (1 - 5))


def test_a_wasted_step_weighs_nothing_in_an_update() -> None:
    agent = critic()
    column_of = Column([0, 3, 1], [6, 1e3], terminated=(0,), invalid=(1,))
    agent.memory.store(record(column_of))
    assert agent.update()["value_loss"] == pytest.approx(0.5 * (6 - 5) ** 2)


def test_the_log_probability_is_that_of_the_action_taken() -> None:
    agent = agent_with(table(value=[[0.0]] * 2, action=[[0.0, math.log(3)]] * 2))
    for action, chance in ((0, 0.25), (1, 0.75)):
        losses = losses_of(agent, Column([0, 1], [2.0], action=[action], terminated=(0,)))
        assert losses["policy"] == pytest.approx(-2 * math.log(chance))


def test_no_gradient_reaches_a_value_but_through_its_own_error() -> None:
    agent = critic(value_coef=1.0)
    batch = prepare(agent, record(Column([0, 1, 2], [1, 2])))
    total(agent.compute_loss(batch, batch.valid)[0]).backward()
    errors = [-x / 2 for x in column(batch.advantage)]
    assert slopes(agent.network, "value") == pytest.approx([*errors, 0.0, 0.0])


@pytest.mark.parametrize(("reward", "sign"), [(6.0, 1), (4.0, -1)])
def test_an_action_better_than_expected_becomes_likelier(reward: float, sign: int) -> None:
    agent = critic(lr=Schedule(0.01))
    agent.memory.store(record(Column([0, 1], [reward], action=[1], terminated=(0,))))
    agent.update()
    logits = agent.network({"state": torch.tensor([0])}, HiddenState())[0]["policy.action"][0]
    assert (logits[1] - logits[0]).item() == pytest.approx(sign * 0.02, rel=1e-3)


@pytest.mark.parametrize(("reward", "sign"), [(6.0, 1), (4.0, -1)])
def test_a_value_moves_towards_its_target(reward: float, sign: int) -> None:
    agent = critic(lr=Schedule(0.01))
    agent.memory.store(record(Column([0, 1], [reward], terminated=(0,))))
    agent.update()
    value = agent.network({"state": torch.tensor([0])}, HiddenState())[0]["value"]
    assert value.item() == pytest.approx(5 + sign * 0.01, rel=1e-4)


def test_the_entropy_bonus_evens_out_a_policy() -> None:
    network = table(value=[[0.0]] * 2, action=[[0.0, 2.0]] * 2)
    agent = agent_with(network, entropy_coef=1.0, lr=Schedule(0.01))
    agent.memory.store(record(Column([0, 1], [0.0], terminated=(0,))))
    agent.update()
    assert entries(network, "action")[0].tolist() == pytest.approx([0.01, 1.99], rel=1e-3)


def test_advantages_are_standardised_over_what_was_decided() -> None:
    lean = table(value=VALUE, action=[[0.0, math.log(3)]] * 4)
    agent = agent_with(lean, normalize_advantage=True)
    flags: Any = {"terminated": (0, 1), "invalid": (2,)}
    chunk = record(Column([0, 1, 2, 3], [9, 7, 1e6], action=[0, 1, 0], **flags))
    batch = prepare(agent, chunk)
    assert column(batch.advantage)[:2] == pytest.approx([4.0, 0.0])
    loss = agent.compute_loss(batch, batch.valid)[0]["policy"].item()
    assert loss == pytest.approx(-(math.log(0.25) - math.log(0.75)) / 2)  # of 1 and -1


def split() -> tuple[ActorCritic, nn.Module, nn.Module]:
    config = NetworkConfig(hidden=(4,), separate=True)
    outputs = ActorCritic.output_space({"action": Discrete(2)})
    generator = torch.Generator().manual_seed(0)
    network = build_network(config, {"x": Box(-1, 1, (2,))}, outputs, generator)
    parts = {name.split(".")[1]: None for name, _ in network.named_parameters()}
    policy, value = (network.get_submodule(f"networks.{name}") for name in sorted(parts))
    return agent_with(network), policy, value


@pytest.mark.parametrize("loss", ["policy", "value"])
def test_separate_networks_learn_only_from_their_own_loss(loss: str) -> None:
    agent, policy, value = split()
    x = torch.tensor([[[0.5, -0.3]], [[0.1, 0.2]], [[0.4, 0.4]]])
    chunk = record(Column([0, 1, 2], [1, 2]))._replace(
        observation={"x": x}, final_observation={"x": x[:2]}
    )
    batch = prepare(agent, chunk)
    agent.compute_loss(batch)[0][loss].backward()
    moved = {
        "policy": all(p.grad is not None for p in policy.parameters()),
        "value": all(p.grad is not None for p in value.parameters()),
    }
    assert moved == {"policy": loss == "policy", "value": loss == "value"}


def test_a_separate_value_network_gives_the_bootstrap() -> None:
    agent, _, value = split()
    x = torch.tensor([[[0.5, -0.3]], [[0.1, 0.2]]])
    chunk = record(Column([0, 1], [1.0]))._replace(
        observation={"x": x}, final_observation={"x": x[:1]}
    )
    now, after = (value({"x": row}, HiddenState())[0]["value"].item() for row in x)
    assert prepare(agent, chunk).advantage.item() == pytest.approx(1 + GAMMA * after - now)


def test_acting_draws_each_action_as_often_as_it_is_likely() -> None:
    agent = agent_with(table(value=[[0.0]], action=[[0.0, math.log(3)]]))
    action, memo = agent.act({"state": torch.zeros(4000, dtype=torch.int64)})
    taken = action["action"]
    assert taken.float().mean().item() == pytest.approx(0.75, abs=0.03)
    chance = torch.where(taken == 1, 0.75, 0.25)
    torch.testing.assert_close(memo.tensors["log_prob"], chance.log())


def test_without_exploring_the_likeliest_action_is_taken() -> None:
    agent = agent_with(table(value=[[0.0]] * 2, action=[[0.0, 1.0], [1.0, 0.0]]))
    action, _ = agent.act({"state": torch.tensor([0, 1, 0])}, explore=False)
    assert action["action"].tolist() == [1, 0, 1]


def test_a_forbidden_action_is_never_taken_nor_learned_about() -> None:
    agent = agent_with(table(value=[[0.0]] * 2, action=[[0.0, 50.0]] * 2))
    mask = torch.tensor([[1, 0]]).expand(500, 2)
    action, memo = agent.act({"state": torch.zeros(500, dtype=torch.int64), "action_mask": mask})
    assert action["action"].sum() == 0
    assert memo.tensors["log_prob"].abs().max() == 0
    batch = prepare(agent, masked(record(Column([0, 1], [2.0], terminated=(0,))), [1, 0], [1, 1]))
    assert agent.compute_loss(batch)[0]["policy"].item() == 0


def test_every_network_with_memory_keeps_up_while_acting() -> None:
    network = totalling(value=[1.0], action=[0.0, 0.0])
    agent = agent_with(network)
    state = HiddenState(total=torch.tensor([[3.0]]))
    _, memo = agent.act({"state": torch.tensor([4])}, state)
    assert memo.hidden_state["total"].tolist() == [[7.0]]


def test_nothing_is_learned_before_a_chunk_is_whole_and_it_is_learned_from_once() -> None:
    agent = critic()
    assert agent.update() == {}
    agent.memory.store(record(Column([0, 1, 2], [1, 2])))
    assert agent.update()["value_loss"] > 0
    assert agent.update() == {}


def test_steps_are_those_decided_and_the_learning_rate_follows_them() -> None:
    agent = critic(lr=Schedule(1.0, 0.0, 4))
    chunk = record(Column([0, 3, 1], [1, 0], terminated=(0,), invalid=(1,)))
    rates = []
    for _ in range(3):
        agent.memory.store(chunk)
        rates.append(agent.update()["learning_rate"])
    assert (agent.steps, rates) == (3, [1.0, 0.75, 0.5])


def test_explained_variance_leaves_wasted_steps_out() -> None:
    chunk = record(Column([0, 1, 3, 1], [6, 9, 1e6], terminated=(0, 1), invalid=(2,)))
    agent = critic()
    agent.memory.store(chunk)
    # Targets 6 and 9, values 5 and 7: errors 1 and 2 vary by 1/4, targets by 9/4.
    assert agent.update()["explained_variance"] == pytest.approx(1 - 1 / 9)


def test_a_restored_agent_goes_on_bit_for_bit() -> None:
    agents = [critic(lr=Schedule(0.1)), critic(lr=Schedule(0.1))]
    chunk = record(Column([0, 1, 2], [1, 2], action=[1, 0]))
    agents[0].memory.store(chunk)
    agents[0].update()
    agents[1].load_state_dict(deepcopy(agents[0].state_dict()))
    seen = []
    for agent in agents:
        agent.memory.store(chunk)
        metrics = agent.update()
        action, _ = agent.act({"state": torch.zeros(64, dtype=torch.int64)})
        seen.append((metrics, action["action"].tolist(), agent.steps))
    assert seen[0] == seen[1]
