"""CartPole-v1: solved at a mean return of 475."""

from operant.session.recipe import Recipe

RECIPES = (
    Recipe(
        name="ppo-cartpole",
        algorithm="ppo",
        pattern="CartPole-v1",
        about="mean return 475 within 100k steps",
        settings={
            "steps": 100_000,
            "env": {"num_envs": 8},
            "network": {"hidden": [64, 64], "activation": "tanh", "separate": True},
            "agent": {
                "length": 32,
                "minibatch": 256,
                "epochs": 20,
                "lr": "linear(1e-3, 0)",
                "gamma": 0.98,
                "lam": 0.8,
            },
        },
    ),
    Recipe(
        name="a2c-cartpole",
        algorithm="a2c",
        pattern="CartPole-v1",
        about="mean return 475 within 300k steps",
        settings={
            "steps": 300_000,
            "env": {"num_envs": 8},
            "network": {"hidden": [64, 64], "activation": "tanh", "separate": True},
            "agent": {"optimizer": "adam", "length": 8, "lr": "linear(1e-3, 0)", "gamma": 0.98},
        },
    ),
    Recipe(
        name="dqn-cartpole",
        algorithm="dqn",
        pattern="CartPole-v1",
        about="mean return 475 within 80k steps",
        settings={
            "steps": 80_000,
            "env": {"num_envs": 4},
            "network": {"hidden": [128, 128], "activation": "relu", "init": "default"},
            "agent": {
                "length": 4,
                "lr": "linear(1e-3, 0)",
                "batch_size": 128,
                "updates_per_step": 0.25,
                "tau": 0.01,
                "target_every": 1,
                "n_step": 3,
                "epsilon": "linear(1, 0.05, 12.5%)",
            },
        },
    ),
    Recipe(
        name="ppo-cartpole-memory",
        algorithm="ppo",
        pattern="CartPole-v1",
        about="recurrent, since velocities are hidden: mean return 475 within 300k steps",
        settings={
            "steps": 300_000,
            "env": {"num_envs": 8, "hide": [1, 3]},
            "network": {"hidden": [64], "activation": "tanh", "lstm": 64, "separate": True},
            "agent": {
                "length": 32,
                "minibatch": 256,
                "epochs": 10,
                "lr": "linear(1e-3, 0)",
                "gamma": 0.98,
                "lam": 0.8,
            },
        },
    ),
)
