"""Pendulum-v1: the best mean return is about -150, that of random actions about -1,200."""

from operant.session.recipe import Recipe

RECIPES = (
    Recipe(
        name="sac-pendulum",
        algorithm="sac",
        pattern="Pendulum-v1",
        about="mean return -200 within 10k steps",
        settings={
            "steps": 10_000,
            "env": {"num_envs": 1},
            "network": {"hidden": [64, 64], "activation": "relu", "init": "default"},
            "agent": {"lr": 1e-3, "replay_size": 20_000, "learning_starts": 500},
        },
    ),
)
