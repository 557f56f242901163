"""A run on disk: its directory and lock, its configuration and its checkpoints."""

from __future__ import annotations

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

from operant.config import dump_yaml, from_tree
from operant.core.durable import Durable
from operant.core.errors import CheckpointError, UsageError
from operant.core.protocols import Agent
from operant.session import run_directory as rundir
from operant.session.build import Trial
from operant.session.checkpoint import checkpoint
from operant.session.checkpoint.finite import not_finite
from operant.session.extend import extend
from operant.session.log import METRICS
from operant.session.run_settings import (
    RunConfig,
    as_file,
    run_config,
    split_algorithm,
    split_network,
)
from operant.session.same_run import SETTINGS, check_same_run
from operant.session.saved_spaces import SPACES, spaces_text
from operant.session.start_from import check_kind, take_weights
from operant.session.trust import SIGNATURE, read_tree, sign
from operant.session.try_out import check_memory, try_out

CHECKPOINTS = rundir.CHECKPOINTS
ERROR = "error.txt"  # the traceback of what ended a run
MAX_FAILED_SAVES = 3  # checkpoints in a row that fail before the run does


class Session:
    """The directory of a run while it is being written; as a context manager, it holds the lock."""

    def __init__(self, run: Path, trial: Trial) -> None:
        self.run, self.trial, self.config = run, trial, trial.config
        self.failed_saves = 0  # in a row
        self.made = False  # whether this session made the directory
        self.settings = dump_yaml(as_file(trial.config))  # as in the configuration file
        self._lock = ExitStack()

    @classmethod
    def create(
        cls,
        config: RunConfig,
        root: Path,
        argv: Sequence[str],
        name: str = "",
        from_run: Path | None = None,
    ) -> Self:
        """A new run directory, with everything needed to repeat the run.

        `from_run` is a run whose weights it starts from.
        """
        if from_run is not None:
            check_kind(from_run / rundir.CONFIG, config.algorithm)
        trial = try_out(config)
        check_memory(trial)
        origin = {"from": _start_from(trial.agent, from_run)} if from_run is not None else {}
        config = trial.config
        agent, env, seed = config.algorithm, config.env.id, config.seed
        short = agent.rpartition(":")[2]  # of one by path, the name of its class
        run = rundir.create_run(root, name or f"{short}-{env.replace('/', '-')}-s{seed}")
        about = rundir.provenance(argv, agent=agent, env=env, seed=seed) | origin
        _write(run / rundir.PROVENANCE, json.dumps(about, indent=1) + "\n")
        if trial.interface is not None:
            _write(run / SPACES, spaces_text(trial.interface))
        tree = as_file(config)
        if signature := sign(tree):
            _write(run / SIGNATURE, json.dumps(signature, indent=1) + "\n")
        _write(run / rundir.CONFIG, dump_yaml(tree))
        session = cls(run, trial)
        session.made = True
        return session

    @classmethod
    def open(
        cls, run: Path, trust: bool = False, force: bool = False, steps: int | None = None
    ) -> Self:
        """A run directory that exists, to resume it; with `steps`, for so long.

        `trust`: with code that others named. `force`: with settings that make it another run.
        """
        config = read_config(run / rundir.CONFIG, trust)
        check_same_run(run, as_file(config), force, warn)
        _check_begun(run)
        if steps is not None:
            config = extend(run, config, steps, warn)
        session = cls(run, try_out(config))
        session.settings = dump_yaml(as_file(config))
        return session

    def __enter__(self) -> Self:
        self._lock.enter_context(rundir.lock(self.run))
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
        self._lock.close()

    @property
    def checkpoints(self) -> Path:
        """The directory of checkpoints."""
        return self.run / CHECKPOINTS

    def save(
        self,
        step: int,
        state: Callable[[], dict[str, Any]],
        reasons: Callable[[], Sequence[str]] = tuple,
        last: bool = False,
    ) -> None:
        """Write a checkpoint; a failure is an error for the `last` one or the third in a row.

        `reasons` are asked for after the state, of which reading may show that it is not exact.
        """
        keep = self.config.checkpoint.keep
        try:
            current = state()
            broken = not_finite(current.get("container", {}).get("agent", {}))
            why = reasons()
            checkpoint.save(
                self.checkpoints,
                step,
                current,
                keep=keep,
                reasons=why,
                broken=broken,
                extra={SETTINGS: self.settings},
            )
            self.failed_saves = 0
        except (CheckpointError, OSError) as error:
            self.failed_saves += 1
            if last or self.failed_saves >= MAX_FAILED_SAVES:
                raise CheckpointError(f"{error}; older checkpoints are untouched") from error
            warn(f"{error}; older checkpoints are untouched, training goes on")

    def load(self) -> checkpoint.Checkpoint | None:
        """The newest complete checkpoint; None if none was ever written."""
        return newest_checkpoint(self.run)

    def finish(self, summary: dict[str, Any]) -> None:
        """Mark the run as finished, with its last evaluation."""
        summary = {"finished": time.strftime("%Y-%m-%dT%H:%M:%S%z"), **summary}
        _write(self.run / rundir.DONE, json.dumps(summary, indent=1) + "\n")

    def discard(self) -> None:
        """Remove the directory that this session made, if the run failed before its first step."""
        steps = [path for path in checkpoint.listing(self.checkpoints) if checkpoint.step_of(path)]
        if self.made and not steps and not _has_log(self.run):
            shutil.rmtree(self.run, ignore_errors=True)


def read_config(path: Path, trust: bool = False) -> RunConfig:
    """The configuration in the file of a run; code that it names must be trusted."""
    algorithm, tree = split_algorithm(read_tree(path, trust), str(path))
    network, tree = split_network(tree)
    if not algorithm:
        raise UsageError(f"{path}: algorithm is missing; expected an agent's name, such as ppo")
    return from_tree(run_config(algorithm, network), tree, source=str(path))


def newest_checkpoint(run: Path) -> checkpoint.Checkpoint | None:
    """The newest complete checkpoint of a run; None if none was ever written."""
    directory = run / CHECKPOINTS
    if checkpoint.listing(directory):
        return checkpoint.newest(directory, warn)
    if _has_log(run):
        raise CheckpointError(
            f"{directory}: holds no checkpoint, but {METRICS} has lines; "
            f"remove {run / METRICS} to start again from step 0"
        )
    return None


def _start_from(agent: Agent, run: Path) -> dict[str, Any]:
    saved = newest_checkpoint(run)
    if saved is None:
        raise CheckpointError(f"{run}: holds no checkpoint yet, so there are no weights in it")
    return take_weights(agent, saved, run)


def _check_begun(run: Path) -> None:
    """Refuse to begin anew what was to start from another run, and was ended before its save."""
    about = run / rundir.PROVENANCE
    try:
        origin = json.loads(about.read_bytes()).get("from") if about.exists() else None
        named = origin["run"] if origin else ""
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        raise UsageError(f"{about}: is not what a run writes there; remove it to go on") from None
    if named and not checkpoint.listing(run / CHECKPOINTS):
        raise CheckpointError(
            f"{run}: was to start from the weights of {named} and ended before it saved "
            f"them; train it again with --from {named}"
        )


def _has_log(run: Path) -> bool:
    log = run / METRICS
    return log.exists() and log.stat().st_size > 0


@contextmanager
def fitting(saved: checkpoint.Checkpoint) -> Iterator[None]:
    """Turn errors while a checkpoint is loaded into one that names it and the likely reason."""
    try:
        yield
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
        what = " ".join(str(error).split())[:200]
        raise CheckpointError(
            f"{saved.path}: does not fit its run ({what}); was {rundir.CONFIG} changed since?"
        ) from error


def _write(path: Path, text: str) -> None:
    """Write to a temporary file and rename it: a file of a run is complete or not there."""
    files, temporary = Durable(), path.with_name(f".{path.name}")
    temporary.unlink(missing_ok=True)
    files.write(temporary, [text.encode("utf-8", "backslashreplace")])
    files.rename(temporary, path)


def warn(message: str) -> None:
    """Print a warning to standard error."""
    print(f"operant: warning: {message}", file=sys.stderr, flush=True)
