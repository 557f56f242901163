"""Gymnasium's classic control, but for CartPole and Pendulum, which have modules of their own.

DQN's settings are those of the RL Baselines3 Zoo. It counts the steps between copies of the target
network in environment steps, and Operant in gradient steps: 600 of them at one gradient step for
every two are 300 here.
"""

from operant.session.recipe import Recipe

# A gradient step for every environment step; the zoo has these for Acrobot and LunarLander alike.
DQN_EVERY_STEP = {
    "steps": 100_000,
    "env": {"num_envs": 1},
    "network": {"hidden": [256, 256]},
    "agent": {
        "length": 4,
        "lr": 6.3e-4,
        "batch_size": 128,
        "replay_size": 50_000,
        "learning_starts": 0,
        "updates_per_step": 1,
        "target_every": 250,
        "epsilon": "linear(1, 0.1, 12%)",
    },
}

RECIPES = (
    Recipe(
        name="dqn-mountaincar",
        algorithm="dqn",
        pattern="MountainCar-v0",
        about="mean return -160 after 100k steps (seed 1); -200 by plain defaults",
        settings={
            "steps": 100_000,
            "env": {"num_envs": 1},
            "network": {"hidden": [256, 256]},
            "agent": {
                "length": 16,
                "lr": 4e-3,
                "gamma": 0.98,
                "batch_size": 128,
                "replay_size": 10_000,
                "updates_per_step": 0.5,
                "target_every": 300,
                "epsilon": "linear(1, 0.07, 20%)",
            },
        },
    ),
    Recipe(
        name="dqn-acrobot",
        algorithm="dqn",
        pattern="Acrobot-v1",
        about="mean return -70 after 100k steps (seed 1); -411 by plain defaults",
        settings=DQN_EVERY_STEP,
    ),
    Recipe(
        name="ppo-mountaincar",
        algorithm="ppo",
        pattern="MountainCar-v0",
        about="mean return -136 and -138 after 100k steps (seeds 1 and 2); "
        "-200 by plain defaults (seed 1)",
        settings={
            "steps": 100_000,
            "env": {"num_envs": 8, "normalize_reward": True},
            "network": {"normalize": True},
            "agent": {"length": 16, "epochs": 4, "lam": 0.98},
        },
    ),
)
