"""The tasks on which scores are compared: which agents, how many steps, how many environments.

Both libraries get the same steps and the same number of environments; everything else is theirs.
"""

from __future__ import annotations

from typing import NamedTuple

ON_POLICY, REPLAY = 8, 1  # environments, by the kind of agent
MAX_STEPS = 1_000  # of an evaluation episode in environments without a time limit
# By contender: what it is called in tables.
CONTENDERS = {
    "operant": "Operant, plain defaults",
    "operant-recipe": "Operant, recipe",
    "sb3": "SB3, defaults",
    "zoo": "SB3, RL Zoo settings",
}


class Task(NamedTuple):
    """One agent on one environment."""

    env: str
    agent: str
    steps: int

    @property
    def num_envs(self) -> int:
        """Environments that are stepped together."""
        return ON_POLICY if self.agent in ("a2c", "ppo", "trpo") else REPLAY


def _tasks(env: str, **steps: int) -> list[Task]:
    return [Task(env, agent, count) for agent, count in steps.items()]


SUITES: dict[str, list[Task]] = {
    "classic": [
        *_tasks("CartPole-v1", ppo=50_000, a2c=50_000, trpo=50_000, dqn=50_000),
        *_tasks("MountainCar-v0", ppo=100_000, a2c=100_000, dqn=100_000),
        *_tasks("Acrobot-v1", ppo=100_000, a2c=100_000, dqn=100_000),
        *_tasks("Pendulum-v1", ppo=100_000, a2c=100_000, trpo=100_000),
        *_tasks("Pendulum-v1", ddpg=10_000, td3=10_000, sac=10_000),
        *_tasks("FrozenLake-v1", ppo=50_000, a2c=50_000, dqn=50_000),
        *_tasks("CliffWalking-v1", ppo=50_000, a2c=50_000, dqn=50_000),
        *_tasks("LunarLander-v3", ppo=200_000, a2c=200_000, dqn=100_000),
    ],
    "mujoco-short": [
        task
        for name in ("HalfCheetah", "Hopper", "Walker2d", "InvertedDoublePendulum")
        for task in [
            *_tasks(f"{name}-v5", ppo=200_000, trpo=200_000),
            *_tasks(f"{name}-v5", ddpg=30_000, td3=30_000, sac=30_000),
        ]
    ],
}
