"""Agents of one's own by path, everywhere that a built-in name is accepted."""

from __future__ import annotations

from pathlib import Path

import pytest
from own_agents import Own
from running import COMMON, call, only_run, trace, train

import operant
from operant.agents.registry import AGENTS, agent_class, agent_name, config_of
from operant.config import load_yaml
from operant.core.errors import UsageError
from operant.session.compose import compose

OWN = "own_agents:Own"


@pytest.mark.parametrize("name", AGENTS)
def test_the_settings_of_every_agent_are_what_its_create_says(name: str) -> None:
    known = AGENTS[name]
    assert issubclass(known.config, config_of(known.cls))


def test_an_agent_by_path_trains_resumes_evaluates(tmp_path: Path) -> None:
    run = train(f"train {OWN} --agent.patience 3 --env.num-envs 2 --steps 128", tmp_path / "one")
    assert run.name.startswith("Own-CartPole-v1-s3-")
    written = load_yaml(run / "config.yaml")
    assert (written["algorithm"], written["agent"]["patience"]) == (OWN, 3)
    whole = train(f"train {OWN} --agent.patience 3 --env.num-envs 2 --steps 256", tmp_path / "two")
    assert call(["resume", str(run), "--steps", "256", "--quiet"]).code == 0
    assert trace(run) == trace(whole)
    assert "over 2 episodes" in call(["eval", str(run), "--episodes", "2"]).out


def test_an_agent_class_trains_in_python(tmp_path: Path) -> None:
    run = operant.train(
        Own, "CartPole-v1", steps=64, agent={"patience": 2}, runs=tmp_path, quiet=True
    )
    assert run.config.algorithm == OWN
    assert isinstance(run.agent, Own)
    assert type(operant.load(run.path).agent) is Own


def test_the_help_explains_the_settings_of_an_agent_by_path() -> None:
    said = call(f"train {OWN} --help").out
    assert "agent  How an agent of one's own learns." in said
    assert "--agent.patience INT >=1" in said
    assert "updates to wait [7]" in said
    assert f"Defaults are {OWN}'s own: no recipe fits CartPole-v1." in said


@pytest.mark.parametrize(("name", "agent"), [(OWN, Own), ("PPO", AGENTS["ppo"].cls)])
def test_a_file_names_an_agent_as_the_command_does(name: str, agent: type) -> None:
    config, _ = compose("", {"algorithm": name})
    assert agent_class(config.algorithm) is agent


def test_a_class_of_ours_is_known_by_its_short_name() -> None:
    assert agent_name(AGENTS["dqn"].cls) == "dqn"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("own_agents:Owm", "algorithm = 'own_agents:Owm': module 'own_agents' has no 'Owm'"),
        ("no_module:Own", "module 'no_module' cannot be imported"),
        ("own_agents:function", "expected a class that extends operant.agents.AgentBase"),
        ("own_agents:NoAgent", "lacks act, update, state_dict, load_state_dict"),
        ("own_agents:Unannotated", "create's `config` has no annotation"),
        ("own_agents:Careless", "Undecorated is no dataclass"),
        ("own_agents:Demanding", "the setting 'patience' of Incomplete has no default"),
        ("own_agents", "agent 'own_agents' is unknown"),
    ],
)
def test_what_is_no_agent_is_refused_with_what_is_expected(name: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        compose(name, {})
    assert said in str(error.value)


def test_a_recipe_does_not_fit_an_agent_of_ones_own(tmp_path: Path) -> None:
    result = call(f"train {OWN} {COMMON} --recipe ppo-cartpole", tmp_path)
    assert f"--recipe ppo-cartpole: no such recipe for {OWN}" in result.err


def test_a_class_within_a_function_trains_but_is_not_found_again(tmp_path: Path) -> None:
    class Inner(Own):
        pass

    operant.train(Inner, "CartPole-v1", steps=64, runs=tmp_path, quiet=True)
    assert load_yaml(only_run(tmp_path) / "config.yaml")["algorithm"] == "here:Inner"
