"""Prioritized DQN, Rainbow and discrete SAC.

Rainbow's `value_min` and `value_max` are the range of discounted returns: CartPole gives 1 a step,
so 1 / (1 - gamma) = 100 is the most; MinAtar's games give nothing negative.
"""

from operant.session.recipe import Recipe

CARTPOLE = {
    "steps": 80_000,
    "env": {"num_envs": 4},
    "network": {"hidden": [128, 128], "activation": "relu", "init": "default"},
}
DQN_CARTPOLE = {
    "length": 4,
    "lr": "linear(1e-3, 0)",
    "batch_size": 128,
    "updates_per_step": 0.25,
    "tau": 0.01,
    "target_every": 1,
    "n_step": 3,
    "priority_beta": "linear(0.4, 1)",
}

RECIPES = (
    Recipe(
        name="dqn-per-cartpole",
        algorithm="dqn-per",
        pattern="CartPole-v1",
        about="dqn-cartpole with a prioritized replay buffer",
        settings={**CARTPOLE, "agent": {**DQN_CARTPOLE, "epsilon": "linear(1, 0.05, 12.5%)"}},
    ),
    Recipe(
        name="rainbow-cartpole",
        algorithm="rainbow",
        pattern="CartPole-v1",
        about="returns from 0 to 100",
        settings={**CARTPOLE, "agent": {**DQN_CARTPOLE, "value_min": 0, "value_max": 100}},
    ),
    Recipe(
        name="rainbow-minatar",
        algorithm="rainbow",
        pattern="MinAtar/*",
        about="dqn-minatar with all of Rainbow; returns from 0 to 20",
        settings={
            "steps": 500_000,
            "threads": 2,
            "env": {"num_envs": 8},
            "network": {"activation": "relu", "init": "default"},
            "agent": {
                "length": 4,
                "lr": 2.5e-4,
                "batch_size": 64,
                "updates_per_step": 0.125,
                "target_every": 500,
                "learning_starts": 5_000,
                "replay_size": 100_000,
                "priority_beta": "linear(0.4, 1)",
                "value_min": 0,
                "value_max": 20,
            },
        },
    ),
)
