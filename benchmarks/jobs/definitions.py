"""What the training works train, in Operant's words; peers read the same numbers.

Every number that decides how much there is to compute stands here, so that a changed default
changes nothing. Whatever is not named is Operant's default.
"""

from __future__ import annotations

from typing import Any

Settings = dict[str, Any]

PONG: Settings = {"id": "ALE/Pong-v5", "reward_clip": 1.0, "frame_stack": 4, "frame_skip": 4}
CARTPOLE_PPO: Settings = {
    "env": {"id": "CartPole-v1", "num_envs": 8},
    "network": {"hidden": [64, 64], "activation": "tanh", "separate": True},
    "agent": {"length": 128, "epochs": 4, "minibatch": 256},
}
HALFCHEETAH: Settings = {  # of agents with a replay
    "env": {"id": "HalfCheetah-v5", "num_envs": 1},
    "network": {"hidden": [256, 256], "activation": "relu"},
    "agent": {
        "length": 1,
        "batch_size": 256,
        "updates_per_step": 1.0,
        "replay_size": 1_000_000,
        "learning_starts": 1_000,
    },
}
TRAINING: dict[str, tuple[str, Settings]] = {  # by work: the agent, and its settings
    "ppo-pong": (
        "ppo",
        {
            "env": {**PONG, "num_envs": 8},
            "agent": {
                "length": 128,
                "epochs": 4,
                "minibatch": 256,
                "lr": 2.5e-4,
                "clip": 0.1,
                "entropy_coef": 0.01,
            },
        },
    ),
    "ppo-cartpole": ("ppo", CARTPOLE_PPO),
    "ppo-cartpole-async": ("ppo", {**CARTPOLE_PPO, "sampler": "async"}),
    "ppo-halfcheetah": (
        "ppo",
        {
            "env": {"id": "HalfCheetah-v5", "num_envs": 8},
            "network": {"hidden": [64, 64], "activation": "tanh", "separate": True},
            "agent": {"length": 256, "epochs": 10, "minibatch": 64},
        },
    ),
    "dqn-pong": (
        "dqn",
        {
            "env": {**PONG, "num_envs": 1},
            "agent": {
                "length": 4,
                "batch_size": 32,
                "updates_per_step": 0.25,
                "replay_size": 50_000,
                "learning_starts": 2_000,
                "target_every": 250,
                "epsilon": 0.05,
                "double": False,  # as the peers' DQN
            },
        },
    ),
    "rainbow-pong": (
        "rainbow",
        {
            "env": {**PONG, "num_envs": 1},
            "agent": {
                "length": 4,
                "batch_size": 32,
                "updates_per_step": 0.25,
                "replay_size": 50_000,
                "learning_starts": 2_000,
                "target_every": 250,
                "n_step": 3,
                "atoms": 51,
                "value_min": -10.0,
                "value_max": 10.0,
                "priority_alpha": 0.5,
                "priority_beta": 0.4,
                "dueling": False,  # Tianshou's has a second hidden layer for it, which ours has not
            },
        },
    ),
    "sac-halfcheetah": ("sac", HALFCHEETAH),
    "td3-halfcheetah": ("td3", HALFCHEETAH),
}


def steady(settings: Settings) -> int:
    """The step from which on every step is like the next."""
    return int(settings["agent"].get("learning_starts", 0))
