"""`operant list` shows what can be made here, and what brings the rest."""

from __future__ import annotations

import gymnasium
import pytest
from running import call

from operant.envs.providers import catalog


@pytest.fixture
def strange(monkeypatch: pytest.MonkeyPatch) -> None:
    """Environments that are registered but cannot be made."""
    entry_points = {
        "Absent-v0": "no_such_package.envs:Absent",
        "Raising-v0": "gymnasium.envs.box2d_absent:Raising",
        "Old-v0": gymnasium.registry["Ant-v2"].entry_point,
    }
    for name, entry_point in entry_points.items():
        spec = gymnasium.envs.registration.EnvSpec(name, entry_point)
        monkeypatch.setitem(gymnasium.registry, name, spec)


def environments(pattern: str = "") -> list[str]:
    said = call(f"list {pattern}").out
    found = said[said.index("\nenvironments") :].split("\nmore")[0]
    return [line.strip() for line in found.splitlines()[2:]]


@pytest.mark.usefixtures("strange")
def test_what_cannot_be_made_is_not_listed() -> None:
    found = environments()
    assert not {"Absent-v0", "Raising-v0", "Old-v0", "Ant-v2", "GymV21Environment-v0"} & {*found}
    assert {"CartPole-v1", "FrozenLake-v1", "Pendulum-v1"} <= {*found}


@pytest.mark.parametrize("name", ["CartPole-v1", "Acrobot-v1", "Taxi-v4", "Blackjack-v1"])
def test_what_is_listed_can_be_made(name: str) -> None:
    assert name in environments()
    gymnasium.make(name).close()


def test_a_missing_extra_is_named_with_its_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = {"Absent": ("no_such_package", "absent")}
    monkeypatch.setattr(catalog, "PROVIDERS", catalog.PROVIDERS | absent)
    said = call("list cartpole").out
    assert "\nmore\n" in said
    assert "  Absent/*: pip install 'operant[absent]'\n" in said


def test_a_missing_simulator_hides_its_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(catalog.PROVIDERS, "mujoco", ("no_such_package", "mujoco"))
    said = call("list").out
    assert "HalfCheetah" not in said.split("\nmore")[0]
    assert "  Ant-v4, Ant-v5, HalfCheetah-v4 and 19 more: pip install 'operant[mujoco]'\n" in said


def test_a_pattern_of_what_an_extra_brings_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(catalog.PROVIDERS, "mujoco", ("no_such_package", "mujoco"))
    result = call("list halfcheetah-v5")
    assert result.code == 2
    assert "no environment that matches 'halfcheetah-v5' can be made here; " in result.err
    assert "HalfCheetah-v5: pip install 'operant[mujoco]'" in result.err


def test_a_recipe_for_many_environments_takes_a_short_line() -> None:
    """Its pattern names each of them, or several versions of each."""
    said = call("list -v5").out.split("\nenvironments")[0]
    lines = said[said.index("\nrecipes") :].splitlines()[2:]
    mujoco = next(line for line in lines if line.startswith("  ppo-mujoco"))
    assert "Ant-v5 and 10 more  mean return" in mujoco
    assert max(map(len, lines)) < 160


def test_only_recipes_for_the_environments_shown_are_shown() -> None:
    said = call("list cartpole").out.split("\nenvironments")[0]
    lines = said[said.index("\nrecipes") :].splitlines()[2:]
    assert lines
    assert all("CartPole-v1" in line for line in lines)
