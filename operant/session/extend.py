"""Gives a run more steps than it was started with, so that resuming it trains longer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from operant.config import dump_yaml
from operant.core.durable import Durable
from operant.core.errors import UsageError
from operant.core.schedule import Schedule
from operant.session.checkpoint import checkpoint
from operant.session.compose import in_steps
from operant.session.run_directory import CHECKPOINTS, CONFIG, DONE, lock
from operant.session.run_settings import RunConfig, as_file


def extend(run: Path, config: RunConfig, steps: int, warn: Callable[[str], None]) -> RunConfig:
    """Make the run `steps` long; schedules that are shares of it become longer with it."""
    with lock(run):
        trained = steps_trained(run)
        if steps <= trained:
            raise UsageError(
                f"steps = {steps}: {run} has trained {trained} steps already; expected more"
            )
        longer = replace(config, steps=steps, agent=in_steps(config.agent, steps))
        for jump in _jumps(config, longer, trained):
            warn(jump)
        # In this order: a run that is interrupted in between can be resumed, and ends at once.
        (run / DONE).unlink(missing_ok=True)
        files, written = Durable(), run / f".{CONFIG}"
        written.unlink(missing_ok=True)
        files.write(written, [dump_yaml(as_file(longer)).encode()])
        files.rename(written, run / CONFIG)
    return longer


def steps_trained(run: Path) -> int:
    """The step of the newest checkpoint; 0 if there is none."""
    names = [checkpoint.NAME.fullmatch(p.name) for p in checkpoint.listing(run / CHECKPOINTS)]
    return max((int(name[1]) for name in names if name), default=0)


def _jumps(before: RunConfig, now: RunConfig, step: int) -> list[str]:
    """What to say of schedules that go on at another value than the one they had come to."""
    found = []
    for name, old in vars(before.agent).items():
        new = getattr(now.agent, name)
        if isinstance(old, Schedule) and old(step) != new(step):
            found.append(
                f"agent.{name} goes from {old(step):.3g} to {new(step):.3g} at step {step}: "
                f"it is a share of the run, now {new}; a schedule in steps would not change"
            )
    return found
