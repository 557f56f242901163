"""Gives a run more steps than it was started with, so that resuming it trains longer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from operant.config import dump_yaml
from operant.core.durable import Durable
from operant.core.errors import UsageError
from operant.session.checkpoint import checkpoint
from operant.session.compose import in_steps
from operant.session.run_directory import CONFIG, DONE, lock
from operant.session.run_settings import as_file
from operant.session.session import CHECKPOINTS, read_config


def extend(run: Path, steps: int, trust: bool = False) -> None:
    """Make the run `steps` long; schedules that are shares of it become longer with it."""
    with lock(run):
        trained = steps_trained(run)
        if steps <= trained:
            raise UsageError(
                f"steps = {steps}: {run} has trained {trained} steps already; expected more"
            )
        config = read_config(run / CONFIG, trust)
        config = replace(config, steps=steps, agent=in_steps(config.agent, steps))
        # In this order: a run that is interrupted in between can be resumed, and ends at once.
        (run / DONE).unlink(missing_ok=True)
        files, written = Durable(), run / f".{CONFIG}"
        written.unlink(missing_ok=True)
        files.write(written, [dump_yaml(as_file(config)).encode()])
        files.rename(written, run / CONFIG)


def steps_trained(run: Path) -> int:
    """The step of the newest checkpoint; 0 if there is none."""
    names = [checkpoint.NAME.fullmatch(p.name) for p in checkpoint.listing(run / CHECKPOINTS)]
    return max((int(name[1]) for name in names if name), default=0)
