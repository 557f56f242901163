"""One run on disk: its directory and lock, its configuration, its log and its checkpoints."""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from operant.core.errors import CheckpointError, UsageError
from operant.envs.manager import make_manager
from operant.session import checkpoint, rundir
from operant.session.build import build_agent, resolve, seed_for
from operant.session.config import dump_yaml, from_tree, load_yaml, to_tree
from operant.session.run_config import RunConfig, run_config

SAVE_ATTEMPTS = 3  # failed checkpoints in a row, after which a run is not worth going on with


class Session:
    """The directory of a run while it is being written; a context that holds its lock."""

    def __init__(self, run: Path, config: RunConfig) -> None:
        self.run, self.config = run, config
        self.failures = 0
        self._held = ExitStack()

    @classmethod
    def create(cls, config: RunConfig, root: Path, argv: Sequence[str], name: str = "") -> Self:
        """A new run directory with everything needed to run it again."""
        config = resolved(config)
        agent, env, seed = config.algorithm, config.env.id, config.seed
        run = rundir.create_run(root, name or f"{agent}-{env.replace('/', '-')}-s{seed}")
        about = rundir.provenance(argv, agent=agent, env=env, seed=seed)
        (run / rundir.PROVENANCE).write_text(json.dumps(about, indent=1) + "\n")
        (run / rundir.CONFIG).write_text(dump_yaml(to_tree(config)))
        return cls(run, config)

    @classmethod
    def open(cls, run: Path) -> Self:
        """A run that exists."""
        return cls(run, read_config(run / rundir.CONFIG))

    def __enter__(self) -> Self:
        self._held.enter_context(rundir.lock(self.run))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._held.close()

    @property
    def checkpoints(self) -> Path:
        """Where checkpoints are."""
        return self.run / "checkpoints"

    def save(self, step: int, state: dict[str, Any], reasons: Sequence[str] = ()) -> None:
        """Write a checkpoint; a disk that is full for a while does not stop the run."""
        try:
            checkpoint.save(
                self.checkpoints, step, state, keep=self.config.checkpoint.keep, reasons=reasons
            )
            self.failures = 0
        except CheckpointError as error:
            self.failures += 1
            warn(f"{error}; older checkpoints are untouched, training goes on")
            if self.failures >= SAVE_ATTEMPTS:
                raise

    def load(self) -> checkpoint.Checkpoint | None:
        """The newest whole checkpoint; None if none was ever written."""
        if not checkpoint.listing(self.checkpoints):
            return None
        return checkpoint.newest(self.checkpoints, warn)

    def finish(self, summary: dict[str, Any]) -> None:
        """Mark the run as done."""
        summary = {"finished": time.strftime("%Y-%m-%dT%H:%M:%S%z"), **summary}
        (self.run / rundir.DONE).write_text(json.dumps(summary, indent=1) + "\n")


def read_config(path: Path) -> RunConfig:
    """A configuration file as a configuration, checked strictly."""
    tree = load_yaml(path)
    algorithm = tree.get("algorithm", "")
    if not isinstance(algorithm, str) or not algorithm:
        raise UsageError(f"{path}: algorithm is missing; expected an agent's name, such as ppo")
    return from_tree(run_config(algorithm), tree, source=str(path))


def resolved(config: RunConfig) -> RunConfig:
    """The configuration with what `auto` and 0 stand for here, once it is known to be usable."""
    manager = make_manager(config.env, seed_for(config.seed, "env"), 1)
    try:
        config = dataclasses.replace(config, **resolve(config, manager.spaces))
        build_agent(config, manager.spaces)
    finally:
        manager.close()
    return config


def load_agent(run: Path) -> tuple[RunConfig, Any]:
    """The configuration of a run and its agent as last saved."""
    session = Session.open(run)
    saved = session.load()
    if saved is None:
        raise CheckpointError(f"{run}: holds no checkpoint yet")
    manager = make_manager(session.config.env, 0, 1)
    try:
        agent = build_agent(session.config, manager.spaces)
    finally:
        manager.close()
    agent.load_state_dict(saved.state["container"]["agent"])
    return session.config, agent


def warn(message: str) -> None:
    """A line on standard error."""
    print(f"operant: warning: {message}", file=sys.stderr, flush=True)
