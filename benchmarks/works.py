"""What is measured: each work, who can do it, and what Operant is meant to reach.

Plain data: a peer that learns to do a work is one more entry of its `jobs`, the module under
`benchmarks/jobs` that does it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

OURS, LIMIT = "operant", "limit"
LEAST_OF_LIMIT = 0.8  # what every work is to reach of it
NAMES = {
    OURS: "Operant",
    LIMIT: "limit",
    "sb3": "Stable-Baselines3",
    "tianshou": "Tianshou",
    "skrl": "skrl",
}


@dataclass(frozen=True, kw_only=True)
class Work:
    """One thing to measure."""

    title: str
    jobs: dict[str, str]  # by contender, the module that does it
    unit: str = "steps/s"  # of the figure that is compared
    better: Literal["more", "less"] = "more"  # whether a larger or a smaller figure is the better
    against: str = "sb3"  # the contender that the aim is a multiple of, and `--peers` by default
    ratio: float | None = None  # times as good as that, at least
    most: float | None = None  # or a figure of its own, at most
    least: dict[str, dict[str, float]] = field(default_factory=dict)  # of further figures, by part
    extra: tuple[str, ...] = ()  # further figures of the job that the closing line tells
    repeats: int = 3  # unless asked otherwise
    talks: bool = False  # its job shows how far it is on standard error
    spawns: bool = False  # its job starts processes, which cannot be told from those of others


def training(*peers: str) -> dict[str, str]:
    """The jobs of a work that trains."""
    return {OURS: "operant_train", **{p: f"{p}_train" for p in peers}, LIMIT: "limit_train"}


WORKS = {
    "ppo-pong": Work(
        title="PPO on Pong: 8 environments, 128 steps, 4 epochs of 4 minibatches, Nature CNN",
        jobs=training("sb3", "tianshou"),
        ratio=2.0,
    ),
    "ppo-cartpole": Work(
        title="PPO on CartPole-v1: 8 environments, 128 steps, 4 epochs of 4 minibatches, "
        "two networks of 64×64",
        jobs=training("sb3", "tianshou", "skrl"),
        ratio=2.2,
    ),
    "ppo-cartpole-async": Work(
        title="The same, collecting while learning; the policy is at most one rollout stale",
        jobs=training("sb3", "tianshou", "skrl"),
        ratio=3.0,
        spawns=True,
    ),
    "ppo-halfcheetah": Work(
        title="PPO on HalfCheetah-v5: 8 environments, 256 steps, 10 epochs of 32 minibatches, "
        "two networks of 64×64",
        jobs=training("sb3"),
        spawns=True,
    ),
    "dqn-pong": Work(
        title="DQN on Pong: 1 environment, an update of 32 every 4 steps, epsilon 0.05, "
        "replay of 50k",
        jobs=training("sb3", "tianshou"),
        ratio=1.8,
    ),
    "rainbow-pong": Work(
        title="Rainbow on Pong: the same with n-step 3, prioritized, noisy, 51 atoms",
        jobs={OURS: "operant_train", "tianshou": "tianshou_train"},
        against="tianshou",
        ratio=1.5,
    ),
    "sac-halfcheetah": Work(
        title="SAC on HalfCheetah-v5: 1 environment, an update of 256 every step, 256×256",
        jobs=training("sb3", "tianshou", "skrl"),
        ratio=1.6,
    ),
    "td3-halfcheetah": Work(
        title="TD3 on HalfCheetah-v5: 1 environment, an update of 256 every step, 256×256",
        jobs=training("sb3"),
        ratio=1.5,
    ),
    "prioritized-replay": Work(
        title="Prioritized replay: 256 sampled and their priorities updated, of 1,000,000",
        jobs={OURS: "operant_prioritized", "tianshou": "tianshou_prioritized"},
        unit="pairs/s",
        against="tianshou",
        ratio=2.0,
    ),
    "replay-memory": Work(
        title="Memory of 50k Atari transitions, above the process that holds none",
        jobs={OURS: "operant_memory", "sb3": "sb3_memory", LIMIT: "limit_memory"},
        unit="GiB",
        better="less",
        most=0.36,
        extra=("gib",),
    ),
    "sampler-scaling": Work(
        title="Sampling 1 to 512 environments of 0 to 10 ms a step; "
        "the figure is that of 32 environments computing for 1 ms",
        jobs={OURS: "scaling"},
        against="serial",
        ratio=1.8,
        least={"speedups": {"1 ms computing": 1.8, "10 ms computing": 1.8, "10 ms sleeping": 25.0}},
        extra=("speedups", "steadiness"),
        repeats=1,
        talks=True,
        spawns=True,
    ),
    "startup": Work(
        title="`operant train` on CartPole-v1, from the command to its first update",
        jobs={OURS: "startup", "sb3": "startup", LIMIT: "startup"},
        unit="s",
        better="less",
        extra=("seconds", "first_update"),
    ),
}
