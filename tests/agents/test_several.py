"""Any agent over several: what a shared policy and separate ones see, learn and refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from agent_parts import AgentParts
from gymnasium.spaces import Box, Discrete

from operant.agents.ppo import PPO, PPOConfig
from operant.agents.several_actors import AGENT_ID
from operant.agents.several_agents import SeparateAgents, SharedAgents
from operant.core.errors import UsageError
from operant.core.protocols import Rows
from operant.core.schedule import Schedule
from operant.core.spaces import Spaces
from operant.networks.assemble import NetworkConfig
from operant.session.build import build
from operant.session.compose import compose
from operant.session.try_out import try_out

SIGHT = Box(-1, 1, (2,), dtype=np.float32)
TWO = Spaces(
    {"a.observation": SIGHT, "b.observation": SIGHT},
    {"a.action": Discrete(3), "b.action": Discrete(3)},
    agents=("a", "b"),
)
SEEN = {"a.observation": torch.ones(4, 2), "b.observation": torch.eye(4, 2)}


def parts(spaces: Spaces = TWO, lstm: int = 0) -> AgentParts:
    return AgentParts(spaces, NetworkConfig(hidden=(8,), lstm=lstm))


def shared(identify: bool = False, lstm: int = 0) -> SharedAgents:
    return SharedAgents.create(parts(lstm=lstm), PPO, PPOConfig(length=4), 1, identify)


def trained(name: str, steps: int, **settings: Any) -> float:
    """The mean return of the last hundred episodes on the probe of opposites; 2 is the best."""
    tree = {
        "env": {"id": "team_tasks:Opposites", "num_envs": 8, "kwargs": settings.pop("kwargs", {})}
    }
    more = {"sampler": "serial", "compile": "off", "threads": 1, "eval": {"every": None}}
    worker = build(try_out(compose(name, {**tree, **more, **settings, "steps": steps})[0]))
    worker.run(steps)
    worker.close()
    return float(np.mean([episode.reward for episode in worker.episodes[-100:]]))


ROLLOUT = {"length": 32, "lr": "linear(0.005, 0)", "epochs": 6, "minibatch": 64}
ROLLOUT |= {"entropy_coef": 0.02}
REPLAY = {"learning_starts": 100, "batch_size": 64, "length": 2, "lr": 0.003, "tau": 0.05}


def test_separate_policies_learn_to_do_the_opposite() -> None:
    assert trained("ppo", 3000, agents="separate", agent=ROLLOUT) > 1.9


def test_a_shared_policy_that_knows_for_whom_it_acts_learns_it_too() -> None:
    assert trained("ppo", 6000, agents="shared", agent_id=True, agent=ROLLOUT) > 1.9


def test_a_shared_policy_that_does_not_know_cannot_do_better_than_half() -> None:
    assert trained("ppo", 3000, agents="shared", agent=ROLLOUT) < 1.5


@pytest.mark.parametrize("continuous", [False, True])
def test_maddpg_learns_to_do_the_opposite(continuous: bool) -> None:
    settings = {**REPLAY, "updates_per_step": 0.5, "exploration_scale": 0.2}
    assert trained("maddpg", 2000, agent=settings, kwargs={"continuous": continuous}) > 1.8


def test_a_shared_policy_does_for_one_what_it_does_for_another() -> None:
    agent = shared()
    same = dict.fromkeys(SEEN, SEEN["b.observation"])
    action, memo = agent.act(same, explore=False)
    assert torch.equal(action["a.action"], action["b.action"])
    assert memo.tensors["log_prob"].shape == (4, 2)


def test_the_number_of_an_agent_is_one_hot_beside_what_it_sees() -> None:
    agent = shared(identify=True)
    assert set(agent.member.network.source_keys) == {"observation", AGENT_ID}
    assert agent.act(SEEN)[0]["b.action"].shape == (4,)


def test_rows_of_environments_are_rows_of_agents() -> None:
    agent = shared()
    agent.actor.rows = Rows(1, 3, 4)
    assert agent.member.actor.rows == Rows(2, 6, 8)
    some = {k: x[1:3] for k, x in SEEN.items()}
    part, _ = agent.act(some)
    whole, _ = shared().act(SEEN)
    assert torch.equal(part["b.action"], whole["b.action"][1:3])


def test_a_shared_recurrent_state_has_an_axis_of_agents() -> None:
    agent = shared(lstm=4)
    state = agent.initial_state(3)
    assert {tuple(x.shape) for x in state.values()} == {(3, 2, 4)}


def test_schedules_of_a_shared_policy_go_by_steps_of_the_environment() -> None:
    config = PPOConfig(lr=Schedule(1e-3, 0.0, 100))
    agent = SharedAgents.create(parts(), PPO, config, 1)
    assert agent.member.config.lr.over == 200
    assert Schedule(1.0, 0.0, percent=50, run=100).longer(3).over == 150


def test_separate_agents_begin_with_weights_of_their_own() -> None:
    agent = SeparateAgents.create(parts(), PPO, PPOConfig(length=4), 1)
    a, b = (next(agent.members[k].network.parameters()) for k in "ab")
    assert not torch.equal(a, b)
    assert agent.updates == 0


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"agents": "shared", "env": {"id": "CartPole-v1"}}, "has one agent"),
        ({"agent_id": True, "env": {"id": "CartPole-v1"}}, "is for a policy that is shared"),
        (
            {"agents": "shared", "env": {"id": "mpe2:simple_speaker_listener_v4"}},
            "needs the same spaces for all; use agents = 'separate'",
        ),
    ],
)
def test_what_cannot_be_shared_is_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        try_out(compose("ppo", settings)[0])


def test_maddpg_takes_no_way_of_sharing() -> None:
    settings = {"agents": "separate", "env": {"id": "team_tasks:Team"}}
    with pytest.raises(UsageError, match="maddpg learns for all of them"):
        try_out(compose("maddpg", settings)[0])


@pytest.mark.parametrize(
    ("agent", "env_id", "way"),
    [
        ("ppo", "team_tasks:Team", "shared"),
        ("ppo", "mpe2:simple_speaker_listener_v4", "separate"),
        ("maddpg", "team_tasks:Team", "joint"),
        ("ppo", "CartPole-v1", "joint"),
    ],
)
def test_the_way_follows_from_the_spaces(agent: str, env_id: str, way: str) -> None:
    tree = {"env": {"id": env_id, "manager": "simple"}, "compile": "off"}
    assert try_out(compose(agent, tree)[0]).config.agents == way
