"""Gymnasium's toy text: few states, each an input of its own."""

from operant.session.recipe import Recipe

RECIPES = (
    Recipe(
        name="dqn-frozenlake",
        algorithm="dqn",
        pattern="FrozenLake-v1",
        about="mean return 0.9 at 50k steps, one seed",
        settings={
            "steps": 50_000,
            "env": {"num_envs": 1},
            "agent": {"lr": 1e-3, "target_every": 250, "epsilon": "linear(1, 0.05, 30%)"},
        },
    ),
)
