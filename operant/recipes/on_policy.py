"""TRPO, V-trace and A2C on the classic tasks and on MuJoCo's."""

from operant.recipes.mujoco_tasks import PATTERN
from operant.session.recipe import Recipe

RECIPES = (
    Recipe(
        name="trpo-cartpole",
        algorithm="trpo",
        pattern="CartPole-v1",
        about="mean return 500 at 100k steps, three seeds",
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
        about="mean return -174, -190 and -168 at 150k steps, three seeds",
        settings={
            "steps": 150_000,
            "env": {"num_envs": 8, "normalize_reward": True},
            "network": {"normalize": True},
            "agent": {"length": 256, "gamma": 0.9},
        },
    ),
    Recipe(
        name="vtrace-cartpole",
        algorithm="vtrace",
        pattern="CartPole-v1",
        about="mean return 500 at 200k steps",
        settings={
            "steps": 200_000,
            "env": {"num_envs": 8},
            "network": {"hidden": [64, 64], "activation": "tanh"},
            "agent": {
                "length": 20,
                "optimizer": "adam",
                "lr": "linear(2e-3, 0)",
                "gamma": 0.98,
                "lam": 0.95,
                "max_grad_norm": 0.5,
                "normalize_advantage": True,
            },
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
