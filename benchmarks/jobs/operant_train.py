"""Operant's side of the training works: whole training, with its log, progress and checkpoints."""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.jobs.definitions import TRAINING, steady
from benchmarks.jobs.probe import Probe, arguments
from operant.core.experience import Experience
from operant.report.profile import profile
from operant.session.compose import compose
from operant.session.runner import Runner
from operant.session.session import Session

ENDLESS = 10**9  # steps


def main() -> None:
    asked = arguments()
    algorithm, settings = TRAINING[asked.work]
    config, _ = compose(algorithm, {"steps": ENDLESS, **settings}, recipe="none")
    start = steady(settings)
    with tempfile.TemporaryDirectory() as root:
        session = Session.create(config, Path(root), sys.argv)
        probe = Probe(asked, start, partial(spent, session.run, start))
        with session:
            runner = Runner(session)
            listen(runner, probe)
            while not probe.done:
                runner.epoch()
            runner.close()


def spent(run: Path, start: int) -> dict[str, object]:
    """Microseconds a step by activity, as the log has them from step `start` on."""
    found = profile(run)
    late = found.steps - found.counts >= start
    if not late.any():
        return {}
    medians = {name: float(np.median(cost[late])) for name, cost in found.costs.items()}
    return {"spent": {name: round(1e6 * seconds, 2) for name, seconds in medians.items()}}


def listen(runner: Runner, probe: Probe) -> None:
    """Let the probe see every iteration, and end training when it has seen enough."""
    container, collect = runner.container, runner.container.explorer.update

    def update() -> Experience:
        if probe(container.local_step_count):
            container.stop()
        return collect()

    container.explorer.update = update  # type: ignore[method-assign]  # to listen is the point


if __name__ == "__main__":
    main()
