"""MADDPG against slow references, and against DDPG where there is one agent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from agent_parts import create
from gymnasium.spaces import Box, Discrete
from torch import Tensor

from operant.agents.maddpg import MADDPG, MADDPGConfig
from operant.core.errors import UsageError
from operant.core.experience import Drawn, Experience, HiddenState
from operant.core.spaces import Spaces
from operant.networks.assemble import NetworkConfig
from operant.session.build import build
from operant.session.compose import compose
from operant.session.try_out import try_out

SIGHT, PUSH = Box(-1, 1, (2,), dtype=np.float32), Box(-1, 1, (1,), dtype=np.float32)
NETWORK = NetworkConfig(hidden=(8,), activation="relu", init="default")
BATCH, GAMMA = 6, 0.9
SETTINGS = {"gamma": GAMMA, "learning_starts": 0, "batch_size": BATCH, "optimizer": "sgd"}


def spaces_of(first: Any = PUSH) -> Spaces:
    """Two agents, `a` and `b`."""
    seen: dict[str, Any] = {"a.observation": SIGHT, "b.observation": SIGHT}
    return Spaces(seen, {"a.action": first, "b.action": PUSH}, agents=("a", "b"))


def maddpg(first: Any = PUSH, **settings: Any) -> MADDPG:
    agent = create("maddpg", spaces_of(first), NETWORK, SETTINGS | settings)
    assert isinstance(agent, MADDPG)
    return agent


def batch_of(seed: int = 0, discrete: bool = False) -> Experience:
    """One step of six rows: `a` is gone already in row 0, dies in row 1 and is cut in row 2."""
    g = torch.Generator().manual_seed(seed)
    no = torch.zeros(1, BATCH, dtype=torch.bool)
    valid, died = torch.ones(1, BATCH, 2, dtype=torch.bool), torch.zeros(1, BATCH, 2).bool()
    valid[0, 0, 0], died[0, 1, 0] = False, True
    rewards = torch.rand(1, BATCH, 2, generator=g) * valid
    cut = no.clone()
    cut[0, 2] = True
    move = torch.rand(1, BATCH, 1, generator=g) * 2 - 1
    return Experience(
        observation={f"{k}.observation": torch.randn(2, BATCH, 2, generator=g) for k in "ab"},
        hidden_state=HiddenState(),
        first=torch.zeros(2, BATCH, dtype=torch.bool),
        action={
            "a.action": torch.arange(BATCH).view(1, BATCH) % 3 if discrete else move,
            "b.action": torch.rand(1, BATCH, 1, generator=g) * 2 - 1,
        },
        memo={},
        reward=rewards.sum(-1),
        terminated=no,
        truncated=cut,
        valid=~no,
        final_observation=None,
        replaced=None,
        agents={"reward": rewards, "terminated": died, "valid": valid},
    )


def critic_value(agent: Any, network: Any, seen: Any, a: Tensor, b: Tensor) -> Tensor:
    """Q of one moment, given both agents' actions."""
    late = {"action.a.action": a, "action.b.action": b}
    value: Tensor = network({**seen, **late}, HiddenState())[0]["value"][..., 0]
    return value


def policy(network: Any, seen: Any, name: str) -> Tensor:
    action: Tensor = network(seen, HiddenState())[0][f"policy.{name}.action"].tanh()
    return action


def test_targets_come_from_target_policies_of_all_and_zeros_of_who_is_gone() -> None:
    agent, batch = maddpg(), batch_of()
    for member in agent.members.values():  # targets that differ from what is learned
        for x in (*member.policy_target.network.parameters(), *member.network.parameters()):
            torch.nn.init.normal_(x, generator=torch.Generator().manual_seed(int(x.numel())))
    after = {k: x[1] for k, x in batch.observation.items()}
    a, b = (policy(agent.members[k].policy_target.network, after, k) for k in "ab")
    alive = torch.tensor([0.0, 0.0, 1.0, 1.0, 1.0, 1.0])[:, None]
    for i, name in enumerate("ab"):
        target = agent.members[name].critics.target.network
        q = critic_value(agent, target, after, a * alive, b)
        ends = batch.agents["terminated"][0, :, i]
        expected = batch.agents["reward"][0, :, i] + GAMMA * q * ~ends
        views = [agent.view(agent.prepared(batch), j) for j in range(2)]
        found = agent.members[name].targets(views[i], agent.ahead(views))[0]
        assert torch.allclose(found, expected, atol=1e-6)


def test_a_policy_climbs_its_critic_where_it_stood_while_others_did_what_they_did() -> None:
    agent, batch = maddpg(), batch_of()
    prepared = agent.prepared(batch)
    now = {k: x[0] for k, x in batch.observation.items()}
    mine = policy(agent.members["a"].network, now, "a")
    q = critic_value(
        agent, agent.members["a"].critics.network, now, mine, batch.action["b.action"][0]
    )
    there = batch.agents["valid"][0, :, 0]
    found, _ = agent.members["a"].actor_loss(agent.view(prepared, 0))
    assert float(found["actor"].detach()) == pytest.approx(
        -float(q.detach()[there].mean()), abs=1e-6
    )


def test_an_agent_that_is_gone_learns_nothing_from_the_row_and_is_seen_as_zeros() -> None:
    agent, batch = maddpg(), batch_of()
    prepared = agent.prepared(batch)
    assert prepared.action["a.action"][0, 0].tolist() == [0.0]
    loud = batch.action["a.action"].clone()
    loud[0, 0] = 0.77  # what is decided for one who is gone changes nothing
    again = agent.prepared(batch._replace(action=batch.action | {"a.action": loud}))
    for i, member in enumerate(agent.members.values()):
        ahead = {"a.action": torch.zeros(1, BATCH, 1), "b.action": torch.zeros(1, BATCH, 1)}
        ours, theirs = (
            member.critic_loss(agent.view(x, i), None, ahead) for x in (prepared, again)
        )
        assert torch.equal(ours[0]["critic0"], theirs[0]["critic0"])


def test_the_critics_error_is_that_of_a_loop_over_rows() -> None:
    agent, batch = maddpg(), batch_of()
    member, view = agent.members["a"], agent.view(agent.prepared(batch), 0)
    ahead = {k: torch.zeros(1, BATCH, 1) for k in ("a.action", "b.action")}
    target = member.targets(view, ahead)[0]
    now = {k: x[0] for k, x in batch.observation.items()}
    a, b = batch.action["a.action"][0], batch.action["b.action"][0]
    q = critic_value(agent, member.critics.network, now, a, b)
    rows = [0.5 * float(q.detach()[i] - target[i]) ** 2 for i in range(BATCH) if view.valid[0, i]]
    found, _ = member.critic_loss(view, None, ahead)
    assert float(found["critic0"].detach()) == pytest.approx(sum(rows) / 5, abs=1e-6)


def test_discrete_actions_are_one_hot_to_critics_and_carry_a_gradient() -> None:
    agent = maddpg(Discrete(3))
    prepared = agent.prepared(batch_of(discrete=True))
    assert prepared.action["a.action"][0, 4].tolist() == [0.0, 1.0, 0.0]
    member, view = agent.members["a"], agent.view(prepared, 0)
    proposed = member.propose(member.network, view, (0, 1))["a.action"]
    assert proposed.detach().sum(-1).tolist() == [pytest.approx([1.0] * BATCH)]
    losses, _ = member.actor_loss(view)
    losses["actor"].backward()
    assert any(
        float(x.grad.abs().sum()) > 0 for x in member.network.parameters() if x.grad is not None
    )


def test_a_critic_sees_only_whom_it_is_told_of() -> None:
    agent = maddpg(critic_visible_actors={"a": ["a"]})
    alone, whole = (agent.members[k].critics.continuous for k in "ab")
    assert (alone, whole) == (("a.action",), ("a.action", "b.action"))
    with pytest.raises(UsageError, match="there is no agent 'c'"):
        maddpg(critic_visible_actors={"a": ["c"]})


def test_every_sub_policy_learns_from_the_episodes_that_drew_it() -> None:
    agent, batch = maddpg(sub_policies=2), batch_of()
    numbers = torch.tensor([[1.0, 1.0, 1.0, 1.0, 1.0, 1.0]])
    batch = batch._replace(memo={"a.sub_policy": numbers, "b.sub_policy": numbers})
    before = [x.clone() for x in agent.members["a"].network.parameters()]
    agent.learn_from(Drawn(batch, None, np.zeros(BATCH)), agent.due())
    moved = [
        (x - y).flatten(1)
        for x, y in zip(agent.members["a"].network.parameters(), before, strict=True)
    ]
    assert all(float(x[0].abs().sum()) > 0 for x in moved[-1:])
    assert all(float(x[1].abs().sum()) == 0 for x in moved)


def test_an_episode_keeps_the_sub_policy_that_it_drew() -> None:
    agent = maddpg(sub_policies=3)
    seen = {f"{k}.observation": torch.zeros(64, 2) for k in "ab"}
    _, first = agent.act(seen, agent.initial_state(64))
    numbers = first.tensors["a.sub_policy"]
    assert sorted(set(numbers.tolist())) == [1.0, 2.0, 3.0]
    _, second = agent.act(seen, first.hidden_state)
    assert torch.equal(second.tensors["a.sub_policy"], numbers)
    over = torch.arange(64) < 32
    _, third = agent.act(seen, second.hidden_state.reset(over))
    assert torch.equal(third.tensors["a.sub_policy"][32:], numbers[32:])
    assert not torch.equal(third.tensors["a.sub_policy"][:32], numbers[:32])


SAME = {"gamma": 0.9, "tau": 0.1, "batch_size": 8, "learning_starts": 20, "sequence": 3}


def weights_after(name: str, lstm: int) -> list[Any]:
    """Policy and target critic after some training on Pendulum."""
    env = {"id": "Pendulum-v1", "num_envs": 2, "time_limit": 9, "manager": "simple"}
    learning = {**SAME, "updates_per_step": 0.5, "length": 5}
    more = {"sampler": "serial", "compile": "off", "threads": 1, "seed": 3}
    tree = {"env": env, "agent": learning, "network": {"hidden": [8], "lstm": lstm}, **more}
    worker = build(try_out(compose(name, {**tree, "eval": {"every": None}})[0])).run(80)
    agent: Any = worker.agent
    member = agent.members[""] if name == "maddpg" else agent
    worker.close()
    both = (member.network, member.critics.target.network)
    return [x.tolist() for network in both for x in network.parameters()]


@pytest.mark.parametrize("lstm", [0, 4])
def test_with_one_agent_it_is_ddpg_bit_for_bit(lstm: int) -> None:
    assert weights_after("maddpg", lstm) == weights_after("ddpg", lstm)


def test_defaults_are_those_of_the_paper() -> None:
    config = MADDPGConfig()
    assert (config.gamma, config.tau, config.batch_size) == (0.95, 0.01, 1024)
