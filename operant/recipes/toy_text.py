"""Gymnasium's toy text: few states, each an input of its own.

CliffWalking has no time limit of its own, and random actions take 6,830 steps to its goal (mean of
30 episodes). Its recipes set the limit of Taxi, 200 steps, which holds in evaluation, too.
"""

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
    Recipe(
        name="dqn-toy-text",
        algorithm="dqn",
        pattern="CliffWalking-v1 Taxi-v4",
        about="mean return -13 on CliffWalking, -97 on Taxi after 50k steps (seed 1); "
        "-1,000 and -200 by plain defaults",
        settings={
            "steps": 50_000,
            "env": {"num_envs": 1, "time_limit": 200},
            "agent": {"lr": 1e-3, "target_every": 250, "epsilon": "linear(1, 0.05, 30%)"},
        },
    ),
    Recipe(
        name="a2c-toy-text",
        algorithm="a2c",
        pattern="CliffWalking-v1 Taxi-v4",
        about="mean return -15 and -15 on CliffWalking, 7 and -106 on Taxi after 50k steps "
        "(seeds 1 and 2); -1,000 and -200 by plain defaults (seed 1)",
        settings={
            "steps": 50_000,
            "env": {"num_envs": 8, "time_limit": 200, "normalize_reward": True},
            "agent": {"entropy_coef": 0.01},
        },
    ),
    Recipe(
        name="ppo-cliffwalking",
        algorithm="ppo",
        pattern="CliffWalking-v1",
        about="mean return -13, -15, -13 after 50k steps (seeds 1 to 3); "
        "-1,000 by plain defaults (seed 1)",
        settings={
            "steps": 50_000,
            "env": {"num_envs": 8, "time_limit": 200, "normalize_reward": True},
            "agent": {"length": 16, "epochs": 4, "entropy_coef": 0.01},
        },
    ),
    Recipe(
        name="ppo-taxi",
        algorithm="ppo",
        pattern="Taxi-v4",
        about="mean return -25 after 50k steps (seed 1); -148 by plain defaults",
        settings={
            "steps": 50_000,
            "env": {"num_envs": 8, "normalize_reward": True},
            "agent": {"length": 128, "minibatch": 128, "lr": 1e-3, "entropy_coef": 0.01},
        },
    ),
)
