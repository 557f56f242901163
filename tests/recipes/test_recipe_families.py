"""Which recipe each task of a family gets, and what it must set there."""

from __future__ import annotations

import pytest

from operant.recipes import RECIPES
from operant.session.compose import compose


@pytest.mark.parametrize(
    ("agent", "env", "name"),
    [
        ("dqn", "MountainCar-v0", "dqn-mountaincar"),
        ("ppo", "MountainCar-v0", "ppo-mountaincar"),
        ("dqn", "Acrobot-v1", "dqn-acrobot"),
        ("dqn", "LunarLander-v3", "dqn-lunarlander"),
        ("ppo", "LunarLander-v3", "ppo-lunarlander"),
        ("dqn", "FrozenLake-v1", "dqn-frozenlake"),
        ("dqn", "CliffWalking-v1", "dqn-toy-text"),
        ("dqn", "Taxi-v4", "dqn-toy-text"),
        ("a2c", "CliffWalking-v1", "a2c-toy-text"),
        ("a2c", "Taxi-v4", "a2c-toy-text"),
        ("ppo", "CliffWalking-v1", "ppo-cliffwalking"),
        ("ppo", "Taxi-v4", "ppo-taxi"),
    ],
)
def test_a_task_gets_the_recipe_of_its_family(agent: str, env: str, name: str) -> None:
    found = next(r for r in RECIPES if r.algorithm == agent and r.fits(env))
    assert found.name == name


def test_the_target_network_of_mountaincar_is_copied_every_600_environment_steps() -> None:
    config, _ = compose("dqn", {"env": {"id": "MountainCar-v0"}}, recipes=RECIPES)
    agent = config.agent
    assert agent.target_every / agent.updates_per_step == 600  # type: ignore[attr-defined]  # DQN's
    assert agent.epsilon.over == 20_000  # type: ignore[attr-defined]  # a fifth of 100,000 steps


@pytest.mark.parametrize("agent", ["a2c", "dqn", "ppo"])
def test_a_recipe_limits_the_episodes_of_cliffwalking(agent: str) -> None:
    tuned, _ = compose(agent, {"env": {"id": "CliffWalking-v1"}}, recipes=RECIPES)
    plain, _ = compose(agent, {"env": {"id": "CliffWalking-v1"}}, recipe="none")
    assert (tuned.env.time_limit, plain.env.time_limit) == (200, 0)
