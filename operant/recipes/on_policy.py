"""TRPO, V-trace and A2C on the classic tasks and on MuJoCo's."""

from operant.recipes.mujoco_tasks import PATTERN
from operant.session.recipe import Recipe

RECIPES = (
    Recipe(
        name="trpo-cartpole",
        algorithm="trpo",
        pattern="CartPole-v1",
        about="mean return 475 within 100k steps",
        settings={
            "steps": 100_000,
            "env": {"num_envs": 8},
            "network": {"hidden": [64, 64], "activation": "tanh"},
            "agent": {"length": 128, "lr": "linear(1e-3, 0)", "gamma": 0.98, "lam": 0.9},
        },
    ),
    Recipe(
        name="trpo-pendulum",
        algorithm="trpo",
        pattern="Pendulum-v1",
        about="mean return -200 within 150k steps",
        settings={
            "steps": 150_000,
            "env": {"num_envs": 8, "normalize_reward": True},
            "network": {"normalize": True},
            "agent": {"length": 256, "gamma": 0.9},
        },
    ),
    Recipe(
        name="trpo-mujoco",
        algorithm="trpo",
        pattern=PATTERN,
        about="",
        settings={
            "steps": 1_000_000,
            "env": {"num_envs": 8, "normalize_reward": True},
            "network": {"normalize": True},
            "agent": {"length": 256},
        },
    ),
)
