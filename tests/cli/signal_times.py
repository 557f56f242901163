"""Measures how long after a signal a command has ended, in each place where one may come.

`PYTHONPATH=tests/session:tests/cli python tests/cli/signal_times.py [repetitions]` prints a table.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from running import call, only_run
from test_signals import ended_at


class Place(NamedTuple):
    """Where a signal comes: just before the `nth` call of a function of a command."""

    what: str
    where: str
    line: str
    nth: int = 1
    delay: float = 0.2


PPO = "train ppo --steps 100_000_000 --quiet"
SMALL = "--env.num-envs 2 --agent.length 16 --agent.minibatch 16 --agent.epochs 2"
PLACES = (
    Place("start-up: configuration", "operant.session.try_out:try_out", PPO, delay=0.0),
    Place("start-up: environments", "operant.envs.managers.choose:make_manager", PPO, delay=0.0),
    Place("start-up: checkpoint", "operant.session.runner:Runner.__init__", PPO, delay=0.0),
    Place("training, PPO", "operant.samplers.explorer:Explorer.update", PPO, 5),
    Place(
        "training, SAC",
        "operant.agents.optimizer:Optimizer.apply",
        "train sac --env.id Pendulum-v1 --steps 100_000_000 --quiet --agent.learning-starts 500",
        200,
    ),
    Place(
        "training, workers",
        "operant.samplers.explorer:Explorer.update",
        f"{PPO} --sampler parallel --env.workers 2",
        5,
    ),
    Place(
        "evaluation while training",
        "operant.samplers.evaluate:evaluate",
        f"{PPO} --eval.episodes 1_000_000 --eval.every 1_000",
    ),
    Place(
        "compiling",
        "torch._dynamo.convert_frame:compile_frame",
        f"{PPO} {SMALL} --compile on",
        2,
        0.5,
    ),
    Place("plotting", "operant.report.plot:plot_runs", f"{PPO} {SMALL} --steps 64", delay=0.0),
    Place(
        "recording after training",
        "operant.report.video:_even",
        f"{PPO} {SMALL} --steps 64 --video mp4",
    ),
    Place("operant eval", "operant.samplers.evaluate:evaluate", "eval RUN --episodes 1_000_000"),
    Place(
        "operant play --record",
        "operant.report.video:_even",
        "play RUN --record OUT --episodes 999",
    ),
    Place("operant plot", "operant.report.plot:plot_runs", "plot RUN", delay=0.0),
)


def measure(place: Place, number: int, trained: Path) -> float:
    """Seconds from the signal to the end of the process."""
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{scratch}/compiled"
        names = {"RUN": str(trained), "OUT": f"{scratch}/x.mp4"}
        line = [names.get(word, word) for word in place.line.split()]
        runs = ["--runs", f"{scratch}/runs"] if line[0] == "train" else []
        code, errors, seconds = ended_at(
            place.where, [*line, *runs], number, place.nth, place.delay
        )
        assert code == 128 + number, f"{place.what}: code {code}: {errors}"
        return seconds


def main(repetitions: int) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        assert call("train a2c --steps 20 --quiet", Path(scratch)).code == 0
        trained = only_run(Path(scratch))
        print("| where the signal comes | median, s | longest, s |\n|---|---|---|")
        for place in PLACES:
            taken = sorted(
                measure(place, number, trained)
                for _ in range(repetitions)
                for number in (signal.SIGINT, signal.SIGTERM)
            )
            print(f"| {place.what} | {taken[len(taken) // 2]:.2f} | {taken[-1]:.2f} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
