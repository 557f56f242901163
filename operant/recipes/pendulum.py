"""Pendulum-v1: the best mean return is about -150, that of random actions about -1,200."""

from operant.session.recipe import Recipe

RECIPES = (
    Recipe(
        name="ppo-pendulum",
        algorithm="ppo",
        pattern="Pendulum-v1",
        about="mean return -196 at 100k steps, one seed; -905 by plain defaults",
        settings={
            "steps": 100_000,
            "env": {"num_envs": 8, "normalize_reward": True},
            "network": {"normalize": True},
            "agent": {"length": 256, "minibatch": 64, "epochs": 10, "lr": 1e-3, "gamma": 0.9},
        },
    ),
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
