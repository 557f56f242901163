"""Environments of PettingZoo: what is recorded of several agents, by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from team_tasks import Team

from operant.core.errors import UsageError
from operant.envs.env_checks import check_env
from operant.envs.env_settings import EnvConfig
from operant.envs.interface import Interface
from operant.envs.managers.choose import make_manager
from operant.envs.managers.simple import SimpleEnvManager
from operant.envs.providers.catalog import check_env_id
from operant.envs.providers.gymnasium import make_env
from operant.envs.providers.pettingzoo import JointEnv, games

TEAM = EnvConfig(id="team_tasks:Team", num_envs=2, manager="simple")


def stepped(config: EnvConfig, count: int) -> tuple[Any, list[Any]]:
    """A manager, and what its first steps were, copied."""
    manager = make_manager(config, 0)
    manager.reset(1)
    nothing = {name: np.zeros((config.num_envs,), np.int64) for name in manager.spaces.action}
    steps = []
    for _ in range(count):
        step = manager.step(nothing)
        agents = {k: x.copy() for k, x in (step.agents or {}).items()}
        steps.append(step._replace(reward=step.reward.copy(), agents=agents))
    return manager, steps


def test_what_an_agent_sees_and_does_has_its_name() -> None:
    spaces = make_env(TEAM).spaces
    assert spaces.agents == ("agent_0", "agent_1", "agent_2")
    assert list(spaces.observation) == [f"agent_{i}.observation" for i in range(3)]
    assert list(spaces.action) == [f"agent_{i}.action" for i in range(3)]


def test_an_agent_that_died_is_not_valid_from_then_on_and_shows_zeros() -> None:
    _, steps = stepped(TEAM, 4)
    told = [step.agents for step in steps]
    assert [x["valid"][0].tolist() for x in told] == [[True] * 3] * 2 + [[False, True, True]] * 2
    assert [x["terminated"][0].tolist() for x in told] == [
        [False] * 3,
        [True, False, False],
        [False] * 3,
        [False, True, False],
    ]
    assert steps[1].observation["agent_0.observation"][0].tolist() == [1.0, 2.0]  # where it died
    assert steps[2].observation["agent_0.observation"][0].tolist() == [0.0, 0.0]


def test_the_reward_is_the_sum_over_those_who_are_there() -> None:
    _, steps = stepped(TEAM, 4)
    assert [step.agents["reward"][1].tolist() for step in steps] == [
        [1.0, 11.0, 21.0],
        [2.0, 12.0, 22.0],
        [0.0, 13.0, 23.0],
        [0.0, 14.0, 24.0],
    ]
    assert [float(step.reward[1]) for step in steps] == [33.0, 36.0, 36.0, 38.0]


@pytest.mark.parametrize(("cut", "ends"), [((2,), (False, True)), ((), (True, False))])
def test_an_episode_is_truncated_if_a_limit_took_one_of_the_last(
    cut: tuple[int, ...], ends: tuple[bool, bool]
) -> None:
    _, steps = stepped(replace(TEAM, kwargs={"cut": cut}), 4)
    assert (bool(steps[3].terminated[0]), bool(steps[3].truncated[0])) == ends
    assert steps[3].final_observation["agent_1.observation"][0].tolist() == [2.0, 4.0]
    assert steps[3].observation["agent_1.observation"][0].tolist() == [2.0, 0.0]


def test_a_time_limit_ends_the_episode_of_agents_that_live() -> None:
    _, steps = stepped(replace(TEAM, time_limit=1), 1)
    assert steps[0].truncated.tolist() == [True, True]
    assert steps[0].agents["terminated"].tolist() == [[False] * 3] * 2


@pytest.mark.parametrize("kind", ["info", "observation"])
def test_masks_are_known_by_agent_and_free_for_one_that_is_gone(kind: str) -> None:
    config = replace(TEAM, kwargs={"masks": kind})
    env = make_env(config)
    seen = env.reset(0)
    assert seen["action_mask.agent_1.action"].tolist() == [True, False, False]
    for t in range(3):
        taken = {f"agent_{i}.action": np.array(t % 3) for i in range(3)}
        seen, *_ = env.step(taken)
    assert seen["action_mask.agent_0.action"].tolist() == [True, True, True]
    assert seen["action_mask.agent_1.action"].tolist() == [True, False, False]


def test_processes_record_what_one_process_does() -> None:
    here, steps = stepped(TEAM, 6)
    there, others = stepped(replace(TEAM, manager="subproc", workers=2), 6)
    for one, other in zip(steps, others, strict=True):
        assert one.reward.tolist() == other.reward.tolist()
        for name, x in one.agents.items():
            assert x.tolist() == other.agents[name].tolist()
    here.close()
    there.close()


def test_a_game_of_several_agents_resumes_exactly() -> None:
    manager = make_manager(EnvConfig(id="mpe2:simple_spread_v3", num_envs=1, manager="simple"), 0)
    assert isinstance(manager, SimpleEnvManager)
    assert manager.exact
    assert len(manager.spaces.agents) == 3


def test_check_env_finds_nothing_wrong_with_a_game() -> None:
    assert not check_env("mpe2:simple_speaker_listener_v4", steps=30).faults
    assert check_env(Team(), steps=10).steps == 10


def test_an_environment_without_an_observation_of_a_living_agent_is_a_fault() -> None:
    class Silent(Team):
        def _seen(self) -> dict[str, Any]:
            return {k: x for k, x in super()._seen().items() if k != "agent_1"}

    found = check_env(JointEnv(Silent()), steps=5)
    assert "lack 'agent_1'" in found.faults["reset"]


@pytest.mark.parametrize(
    ("env_id", "said"),
    [
        ("mpe2:simple_spread_v9", "mpe2:simple_spread_v3"),
        ("pettingzoo.butterfly:pistonbal_v6", "pettingzoo.butterfly:pistonball_v6"),
    ],
)
def test_a_game_that_does_not_exist_is_refused_with_the_nearest(env_id: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        check_env_id(env_id)


def test_games_are_listed_by_ids_that_can_be_made() -> None:
    assert "mpe2:simple_spread_v3" in games()
    assert "pettingzoo.sisl:pursuit_v5" in games()


def test_the_agents_are_saved_with_the_spaces() -> None:
    interface = Interface.of(make_env(TEAM))
    again = Interface.from_json(interface.to_json())
    assert again.agents == ("agent_0", "agent_1", "agent_2")
    assert again.spaces() == interface.spaces()
