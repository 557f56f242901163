"""Operant's side of the training works: whole training, with its log, progress and checkpoints."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.jobs.definitions import TRAINING, steady
from benchmarks.jobs.probe import Probe, arguments
from operant.core.experience import Experience
from operant.recipes.compose import compose
from operant.session.progress import ProgressView
from operant.session.runner import Runner
from operant.session.session import Session

ENDLESS = 10**9  # steps


def main() -> None:
    asked = arguments()
    algorithm, settings = TRAINING[asked.work]
    config, _ = compose(algorithm, {"steps": ENDLESS, **settings}, recipe="none")
    probe = Probe(asked, steady(settings))
    with tempfile.TemporaryDirectory() as root:
        session = Session.create(config, Path(root), sys.argv)
        with session, ProgressView(config.steps, quiet=True) as progress:
            runner = Runner(session, quiet=True)
            listen(runner, probe)
            while not probe.done:
                runner.epoch(progress)
            runner.close()


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
