"""Run directories: created, locked while a process writes to them, and found by name.

A run holds `config.yaml`, `run.json` (its provenance), `spaces.json` (of its environment),
`metrics.jsonl`, `timing.jsonl`, `tensorboard/`, `checkpoints/`, `best/`, `videos/`, `run.lock`, and
`done.json` once it is finished.
"""

from __future__ import annotations

import fcntl
import os
import platform
import re
import stat
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from operant.core.durable import open_regular
from operant.core.errors import UsageError, suggest
from operant.session.versions import versions

CONFIG, PROVENANCE, DONE, LOCK = "config.yaml", "run.json", "done.json", "run.lock"
CHECKPOINTS = "checkpoints"


def create_run(root: Path, name: str) -> Path:
    """A new directory `<name>-<timestamp>` under `root` that can be written to; its whole path.

    Whole, since an environment may change the current directory.
    """
    root = root.absolute()
    if _exists(root) and not root.is_dir():
        raise UsageError(f"{root}: is a file; expected a directory for runs")
    stem = f"{re.sub(r'[^A-Za-z0-9._-]+', '-', name)}-{time.strftime('%Y%m%d-%H%M%S')}"
    count = 1
    while True:
        run = root / (stem if count == 1 else f"{stem}-{count}")
        try:
            run.mkdir(parents=True)
            _check_writable(run)
            return run
        except FileExistsError:
            count += 1
        except OSError as error:
            raise UsageError(
                f"{run}: cannot be written: {error.strerror}; choose another directory for runs"
            ) from None


@contextmanager
def lock(run: Path) -> Iterator[None]:
    """Lock the run for this process; a second process is refused with the id of the first.

    The kernel releases the lock when the process ends, for whatever reason.
    """
    check_plain(run)
    try:
        file = open_regular(run / LOCK, writing=True)
    except OSError as error:
        raise UsageError(f"{run}: cannot be written: {error.strerror}") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"{run}: is in use by process {holder(run)}; wait for it to end, or stop it"
            ) from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n".encode())
        yield


def holder(run: Path) -> str:
    """The id of the process that has locked a run; empty if none has."""
    try:
        with open_regular(run / LOCK) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return (run / LOCK).read_text("utf-8", "replace").strip() or "unknown"
    except OSError:  # it was never locked
        return ""
    return ""


def provenance(
    argv: Sequence[str], *, agent: str = "", env: str = "", seed: int | None = None
) -> dict[str, Any]:
    """The provenance of a run: enough, with its configuration, to repeat it."""
    return {
        "command": list(argv),
        "agent": agent,
        "env": env,
        "seed": seed,
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        **versions(),
        "platform": platform.platform(),
        "git": _git(Path.cwd()),
    }


def find_run(path: str | Path | None, root: Path, unfinished_only: bool = False) -> Path:
    """The run at `path`, or of that name under `root`; with None, the newest one."""
    run = locate_run(path, root, unfinished_only)
    check_plain(run)
    return run


def locate_run(path: str | Path | None, root: Path, unfinished_only: bool = False) -> Path:
    """As `find_run`, whatever is in the run."""
    if path is not None:
        return _named_run(Path(path), root)
    runs = [r for r in _runs(root) if not (unfinished_only and (r / DONE).exists())]
    if not runs:
        kind = "unfinished run" if unfinished_only else "run"
        raise UsageError(f"{root}: holds no {kind}; name one, or start one with `operant train`")
    return max(runs, key=lambda run: (run / CONFIG).stat().st_mtime_ns).resolve()


def shown(path: Path) -> str:
    """A path as a user here would write it."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def is_run(path: Path) -> bool:
    """Whether this is a run directory: a run writes its configuration first."""
    return (path / CONFIG).is_file()


def check_plain(run: Path) -> None:
    """Refuse a run that holds links, pipes or devices: through them, files elsewhere would change.

    What is in a run was perhaps written by somebody else.
    """
    for directory, folders, files in os.walk(run):
        for name in (*folders, *files):
            path = Path(directory, name)
            mode = path.lstat().st_mode
            if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
                continue
            what = "a link" if stat.S_ISLNK(mode) else "neither a file nor a directory"
            raise UsageError(
                f"{path}: is {what}; a run directory holds plain files and directories only, so "
                f"remove it, or put what it leads to in its place"
            )


def _named_run(path: Path, root: Path) -> Path:
    for candidate in (path, root / path):
        if _exists(candidate) and is_run(candidate):
            return candidate.resolve()  # a link to a run is the user's own, one in it is not
    if _exists(path):
        raise UsageError(f"{path}: is not a run; expected a directory with {CONFIG}")
    runs = [run.name for run in _runs(root)]
    raise UsageError(f"{path}: no such run{suggest(path.name, runs)}")


def _exists(path: Path) -> bool:
    """Whether there is such a file or directory; false of what no path can be."""
    try:
        return path.exists()
    except OSError:  # the name is too long
        return False


def _runs(root: Path) -> list[Path]:
    known = _exists(root) and root.is_dir()
    return [path for path in root.iterdir() if is_run(path)] if known else []


def _check_writable(run: Path) -> None:
    file = run / ".probe"
    file.write_bytes(b"0")
    file.unlink()


def _git(directory: Path) -> dict[str, Any] | None:
    """The current commit, and whether files differ from it; None outside a repository."""
    try:
        answers = [
            subprocess.run(
                ["git", "-C", str(directory), *command],
                capture_output=True,
                text=True,
                check=True,
                timeout=5,
            ).stdout.strip()
            for command in (["rev-parse", "HEAD"], ["status", "--porcelain"])
        ]
    except (OSError, subprocess.SubprocessError):
        return None
    return {"commit": answers[0], "dirty": bool(answers[1])}
