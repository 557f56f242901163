"""Gymnasium's Box2D tasks: LunarLander is solved at a mean return of 200."""

from operant.recipes.classic_control import DQN_EVERY_STEP
from operant.session.recipe import Recipe

RECIPES = (
    Recipe(
        name="dqn-lunarlander",
        algorithm="dqn",
        pattern="LunarLander-v3",
        about="mean return 132 after 100k steps (seed 1); -56 by plain defaults",
        settings=DQN_EVERY_STEP,
    ),
    Recipe(
        name="ppo-lunarlander",
        algorithm="ppo",
        pattern="LunarLander-v3",
        about="mean return 12 and 0 after 200k steps (seeds 1 and 2); "
        "-125 by plain defaults (seed 1)",
        settings={
            "steps": 200_000,
            "env": {"num_envs": 8},
            "agent": {
                "length": 512,
                "epochs": 4,
                "gamma": 0.999,
                "lam": 0.98,
                "entropy_coef": 0.01,
            },
        },
    ),
)
