"""MinAtar: five miniature Atari games of 10x10 pixels."""

from operant.session.recipe import Recipe

RECIPES = (
    Recipe(
        name="ppo-minatar",
        algorithm="ppo",
        pattern="MinAtar/*",
        about="mean return above 5 on Breakout within 300k steps",
        settings={
            "steps": 300_000,
            "threads": 2,
            "env": {"num_envs": 16},
            "network": {"activation": "relu"},
            "agent": {
                "length": 64,
                "minibatch": 256,
                "epochs": 4,
                "lr": "linear(1e-3, 0)",
                "entropy_coef": 0.01,
            },
        },
    ),
    Recipe(
        name="dqn-minatar",
        algorithm="dqn",
        pattern="MinAtar/*",
        about="mean return above 5 on Breakout within 300k steps",
        settings={
            "steps": 300_000,
            "threads": 2,
            "env": {"num_envs": 8},
            "network": {"activation": "relu", "init": "default"},
            "agent": {
                "length": 4,
                "lr": 2.5e-4,
                "batch_size": 64,
                "updates_per_step": 0.125,
                "target_every": 500,
                "epsilon": "linear(1, 0.02, 20%)",
                "learning_starts": 5_000,
                "replay_size": 100_000,
                "n_step": 3,
            },
        },
    ),
)
