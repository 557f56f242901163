"""`operant train` on CartPole-v1, which also prints when its first update was done."""

from __future__ import annotations

import gc
import sys
import time

from operant.cli.main import main
from operant.core.experience import Metrics

COMMAND = "train ppo --env.id CartPole-v1 --steps 1 --quiet --runs runs"


def announced() -> int:
    """Run the command, and say when it has learned for the first time."""
    gc.disable()  # as the command does before it imports
    from operant.agents.ppo import PPO  # noqa: PLC0415  # as the command would

    learn = PPO.update

    def update(agent: PPO) -> Metrics:
        metrics = learn(agent)
        print(f"first update at {time.time()}", flush=True)
        return metrics

    PPO.update = update  # type: ignore[method-assign,assignment]  # to listen is the point
    return main(COMMAND.split())


if __name__ == "__main__":
    sys.exit(announced())
