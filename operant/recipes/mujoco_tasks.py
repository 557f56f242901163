"""Gymnasium's MuJoCo tasks."""

from operant.session.recipe import Recipe

PATTERN = (
    "Ant-v5 HalfCheetah-v5 Hopper-v5 Humanoid*-v5 Inverted*Pendulum-v5 Pusher-v5 Reacher-v5 "
    "Swimmer-v5 Walker2d-v5"
)

RECIPES = (
    Recipe(
        name="ppo-mujoco",
        algorithm="ppo",
        pattern=PATTERN,
        about="mean return 1,006 on Hopper-v5 with --steps 100000, one seed; 482 by plain defaults",
        settings={
            "steps": 1_000_000,
            "env": {"num_envs": 8, "normalize_reward": True},
            "network": {"normalize": True},
            "agent": {"length": 256, "minibatch": 64, "epochs": 10, "lr": "linear(3e-4, 0)"},
        },
    ),
    Recipe(
        name="td3-mujoco",
        algorithm="td3",
        pattern=PATTERN,
        about="mean return 775 on HalfCheetah-v5 with --steps 30000, one seed",
        settings={"steps": 1_000_000, "env": {"num_envs": 1}},
    ),
)
