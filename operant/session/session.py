"""One run on disk: its directory and lock, its configuration, its log and its checkpoints."""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from operant.config import dump_yaml, from_tree, load_yaml
from operant.core.errors import CheckpointError, UsageError
from operant.session import run_directory as rundir
from operant.session.checkpoint import checkpoint
from operant.session.checkpoint.durable import Durable
from operant.session.log import METRICS
from operant.session.machine import prepare
from operant.session.run_settings import RunConfig, as_file, run_config, split_algorithm
from operant.session.try_out import check_memory, try_out

ERROR = "error.txt"  # the traceback of what ended a run
SAVE_ATTEMPTS = 3  # failed checkpoints in a row, after which a run is not worth going on with


class Session:
    """The directory of a run while it is being written; a context that holds its lock."""

    def __init__(self, run: Path, config: RunConfig, why: str = "") -> None:
        self.run, self.config, self.why = run, config, why
        self.failures = 0
        self._held = ExitStack()

    @classmethod
    def create(cls, config: RunConfig, root: Path, argv: Sequence[str], name: str = "") -> Self:
        """A new run directory with everything needed to run it again."""
        trial = try_out(config)
        check_memory(trial)
        config = trial.config
        agent, env, seed = config.algorithm, config.env.id, config.seed
        run = rundir.create_run(root, name or f"{agent}-{env.replace('/', '-')}-s{seed}")
        about = rundir.provenance(argv, agent=agent, env=env, seed=seed)
        _write(run / rundir.PROVENANCE, json.dumps(about, indent=1) + "\n")
        _write(run / rundir.CONFIG, dump_yaml(as_file(config)))
        return cls(run, config, trial.why)

    @classmethod
    def open(cls, run: Path) -> Self:
        """A run that exists."""
        return cls(run, try_out(read_config(run / rundir.CONFIG)).config)

    def __enter__(self) -> Self:
        self._held.enter_context(rundir.lock(self.run))
        (self.run / ERROR).unlink(missing_ok=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, Exception):
            with suppress(OSError):  # a full disk may be the very reason
                _write(self.run / ERROR, "".join(traceback.format_exception(error)))
        self._held.close()

    @property
    def checkpoints(self) -> Path:
        """Where checkpoints are."""
        return self.run / "checkpoints"

    def save(
        self,
        step: int,
        state: Callable[[], dict[str, Any]],
        reasons: Sequence[str] = (),
        last: bool = False,
    ) -> None:
        """Write a checkpoint; a disk that is full for a while stops only the `last` one."""
        keep = self.config.checkpoint.keep
        try:
            checkpoint.save(self.checkpoints, step, state(), keep=keep, reasons=reasons)
            self.failures = 0
        except (CheckpointError, OSError) as error:
            self.failures += 1
            if last or self.failures >= SAVE_ATTEMPTS:
                raise CheckpointError(f"{error}; older checkpoints are untouched") from error
            warn(f"{error}; older checkpoints are untouched, training goes on")

    def load(self) -> checkpoint.Checkpoint | None:
        """The newest whole checkpoint; None if none was ever written."""
        if checkpoint.listing(self.checkpoints):
            return checkpoint.newest(self.checkpoints, warn)
        if self._logged():
            raise CheckpointError(
                f"{self.checkpoints}: holds no checkpoint, but {METRICS} has lines; "
                f"remove {self.run / METRICS} to begin again from step 0"
            )
        return None

    def finish(self, summary: dict[str, Any]) -> None:
        """Mark the run as done."""
        summary = {"finished": time.strftime("%Y-%m-%dT%H:%M:%S%z"), **summary}
        _write(self.run / rundir.DONE, json.dumps(summary, indent=1) + "\n")

    def discard(self) -> None:
        """Remove the directory of a run that was refused before it had logged anything."""
        if not self._logged():
            shutil.rmtree(self.run)

    def _logged(self) -> bool:
        log = self.run / METRICS
        return log.exists() and log.stat().st_size > 0


def read_config(path: Path) -> RunConfig:
    """A configuration file as a configuration, checked strictly."""
    algorithm, tree = split_algorithm(load_yaml(path), str(path))
    if not algorithm:
        raise UsageError(f"{path}: algorithm is missing; expected an agent's name, such as ppo")
    return from_tree(run_config(algorithm), tree, source=str(path))


def load_agent(run: Path) -> tuple[RunConfig, Any]:
    """The configuration of a run and its agent as last saved, on whatever device is here."""
    session = Session(run, read_config(run / rundir.CONFIG))
    saved = session.load()
    if saved is None:
        raise CheckpointError(f"{run}: holds no checkpoint yet")
    config, _, agent, _ = try_out(dataclasses.replace(session.config, device="auto"))
    prepare(config.threads)
    with fitting(saved):
        agent.load_state_dict(saved.state["container"]["agent"])
    return config, agent


@contextmanager
def fitting(saved: checkpoint.Checkpoint) -> Iterator[None]:
    """Say that what is being loaded was saved by a run of other settings, if so."""
    try:
        yield
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
        what = " ".join(str(error).split())[:200]
        raise CheckpointError(
            f"{saved.path}: does not fit its run ({what}); was {rundir.CONFIG} changed since?"
        ) from error


def _write(path: Path, text: str) -> None:
    """Write beside and rename: a file of a run is whole or not there."""
    files, beside = Durable(), path.with_name(f".{path.name}")
    beside.unlink(missing_ok=True)
    files.write(beside, [text.encode()])
    files.rename(beside, path)


def warn(message: str) -> None:
    """A line on standard error."""
    print(f"operant: warning: {message}", file=sys.stderr, flush=True)
