"""The runs of a sweep as processes, several at a time; a signal stops them, after saving."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from operant.cli.sweep_plan import Planned
from operant.report.groups import EVALUATION
from operant.report.progress import clock, in_short
from operant.session.run_directory import DONE, is_run
from operant.session.stop_signal import stop_signals

if TYPE_CHECKING:
    from rich.progress import Progress

POLL_SECONDS = 0.05
STOPPING = b"\noperant: the runs are being stopped and saved; a second signal ends them at once\n"


class SweepProcesses:
    """Runs what is missing of a sweep; then `failed` says why by name, `stopped` which signal."""

    def __init__(self, directory: Path, runs: Sequence[Planned], jobs: int, quiet: bool) -> None:
        self.directory, self.jobs, self.quiet = directory, jobs, quiet
        self.total = len(runs)
        self.missing = [run for run in runs if not (directory / run.name / DONE).exists()]
        self.running: dict[str, tuple[subprocess.Popen[bytes], float]] = {}
        self.ended = self.total - len(self.missing)
        self.failed: dict[str, str] = {}
        self.stopped: int | None = None

    def run(self) -> None:
        """Start as many at a time as `jobs`, until all have ended or a signal came."""
        with self._signals(), progress_bar(self.quiet) as progress:
            bar = progress.add_task("", total=self.total, completed=self.ended)
            if self.ended and not self.quiet:
                self._print(progress, f"{self.ended} of {self.total} runs are finished already")
            queue = list(self.missing)
            try:
                while self.running or (queue and self.stopped is None):
                    while queue and len(self.running) < self.jobs and self.stopped is None:
                        self._start(queue.pop(0))
                    time.sleep(POLL_SECONDS)
                    for line in self._collect():
                        if not self.quiet:
                            self._print(progress, line)
                    progress.update(bar, completed=self.ended)
            finally:
                for process, _ in self.running.values():
                    process.terminate()  # only after an error of our own

    def log(self, name: str) -> Path:
        """Where a run's output goes."""
        return self.directory / f"{name}.log"

    def command(self, run: Planned) -> list[str]:
        """What starts a run, or goes on with it."""
        place = self.directory / run.name
        operant = [sys.executable, "-m", "operant"]
        if is_run(place):
            return [*operant, "resume", str(place), "--quiet"]
        where = [f"--runs={self.directory}", f"--name={run.name}", "--quiet"]
        return [*operant, "train", *run.argv, *where]

    def _start(self, run: Planned) -> None:
        with self.log(run.name).open("ab") as log:
            process = subprocess.Popen(
                self.command(run),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={"OMP_NUM_THREADS": "1", **os.environ},
                start_new_session=True,  # Ctrl-C is for this process, which passes it on once
            )
        self.running[run.name] = process, time.monotonic()
        if self.stopped is not None:  # since it was started
            process.terminate()

    def _collect(self) -> Iterator[str]:
        """A line for each run that has ended."""
        for name, (process, begin) in list(self.running.items()):
            code = process.poll()
            if code is None:
                continue
            del self.running[name]
            done = self.directory / name / DONE
            if code == 0 and done.exists():
                self.ended += 1
                seconds = clock(time.monotonic() - begin)
                yield f"{self.ended}/{self.total}  {name}: {_reached(done)}({seconds})"
            elif self.stopped is None:
                self.failed[name] = f"exit code {code}: {_last_line(self.log(name))}"
                yield f"{name}: failed with {self.failed[name]}"

    @staticmethod
    def _print(progress: Progress, line: str) -> None:
        progress.console.print(line, markup=False, highlight=False, soft_wrap=True)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Pass signals on to the runs, which save and end at the first, and end at the second."""

        def handle(number: int, frame: FrameType | None) -> None:
            self.stopped = number
            for process, _ in self.running.values():
                process.terminate()
            with suppress(OSError):  # not `print`, which the signal may have interrupted
                os.write(2, STOPPING)

        here = threading.current_thread() is threading.main_thread()  # others cannot handle them
        numbers = stop_signals() if here else []
        before = {number: signal.signal(number, handle) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def progress_bar(quiet: bool) -> Progress:
    """A bar of finished runs on a terminal; elsewhere nothing but the lines."""
    from rich.console import Console  # noqa: PLC0415  # slow to import
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    console = Console()
    columns = (BarColumn(None), MofNCompleteColumn(), TextColumn("runs"), TimeElapsedColumn())
    return Progress(*columns, console=console, disable=quiet or not console.is_terminal)


def _reached(done: Path) -> str:
    """What a finished run reached, if it was evaluated."""
    value = json.loads(done.read_text("utf-8")).get(EVALUATION)
    return "" if value is None else f"mean return {in_short(value)} "


def _last_line(log: Path) -> str:
    lines = log.read_text("utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"
