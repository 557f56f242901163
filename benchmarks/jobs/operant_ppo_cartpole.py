"""Operant's side of `ppo-cartpole`: whole training, with its log, progress and checkpoints."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.jobs.probe import Probe, seconds
from operant.recipes.compose import compose
from operant.session.progress import ProgressView
from operant.session.runner import Runner
from operant.session.session import Session

SETTINGS: dict[str, Any] = {
    "steps": 10**9,
    "env": {"id": "CartPole-v1", "num_envs": 8},
    "network": {"hidden": [64, 64], "activation": "tanh", "separate": True},
    "agent": {"length": 128, "epochs": 4, "minibatch": 256},
}


def main() -> None:
    config, _ = compose("ppo", SETTINGS, recipe="none")
    probe = Probe(seconds())
    with tempfile.TemporaryDirectory() as root:
        session = Session.create(config, Path(root), sys.argv)
        with session, ProgressView(config.steps, quiet=True) as progress:
            runner = Runner(session, quiet=True)
            while not probe(runner.step):
                runner.epoch(progress)
            runner.close()


if __name__ == "__main__":
    main()
