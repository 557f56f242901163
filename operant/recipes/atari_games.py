"""Atari games of the Arcade Learning Environment, preprocessed as in the papers."""

from operant.session.recipe import Recipe

RECIPES = (
    Recipe(
        name="ppo-atari",
        algorithm="ppo",
        pattern="ALE/*",
        about="the settings of the PPO paper (arXiv:1707.06347, table 5)",
        settings={
            "steps": 10_000_000,
            "log_every": 10_000,
            "env": {"num_envs": 8, "reward_clip": 1.0, "episodic_life": True},
            "agent": {
                "length": 128,
                "minibatch": 256,
                "epochs": 4,
                "lr": "linear(2.5e-4, 0)",
                "clip": 0.1,
                "entropy_coef": 0.01,
            },
        },
    ),
    Recipe(
        name="ppo-atari-pong",
        algorithm="ppo",
        pattern="ALE/Pong-v5",
        about="a short run on Pong: a larger learning rate, so that it improves within 300k steps",
        settings={
            "steps": 300_000,
            "log_every": 10_000,
            "env": {"num_envs": 8, "reward_clip": 1.0, "episodic_life": True},
            "agent": {
                "length": 128,
                "minibatch": 128,
                "epochs": 4,
                "lr": "linear(1e-3, 2e-4)",
                "clip": 0.2,
                "entropy_coef": 0.01,
            },
        },
    ),
    Recipe(
        name="dqn-atari",
        algorithm="dqn",
        pattern="ALE/*",
        about="the settings of the Nature paper, with Adam and a smaller replay buffer",
        settings={
            "steps": 10_000_000,
            "log_every": 10_000,
            "env": {"num_envs": 1, "reward_clip": 1.0, "episodic_life": True},
            "network": {"init": "default"},
            "agent": {
                "lr": 1e-4,
                "epsilon": "linear(1, 0.05, 10%)",
                "replay_size": 100_000,
                "learning_starts": 20_000,
                "target_every": 2_500,
            },
        },
    ),
)
