"""Several worker processes as one: command all, wait for all, replace those that are lost."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from multiprocessing.util import Finalize
from typing import Any, NamedTuple

from operant.processes import worker
from operant.processes.process import DiedWhileStarting, WorkerProcess, shut_down

RESTART_WINDOW = 600.0  # seconds within which restarts of a worker are counted
RESTART_DELAY = 0.05  # seconds before the first restart; doubled for each further one in the window


class LostWorker(NamedTuple):
    """A worker that died or hangs."""

    process: WorkerProcess
    reason: str


class WorkerPool:
    """Workers that run at most one command each at a time. They end with `close`, or with `owner`.

    `timeout` seconds without a reply count as hung; `max_restarts` is for each worker in a window.
    """

    def __init__(self, owner: object, timeout: float, max_restarts: int) -> None:
        self.timeout, self.max_restarts = timeout, max_restarts
        self.workers: list[WorkerProcess] = []
        self.close = Finalize(owner, shut_down, (self.workers,), exitpriority=10)
        self.restarts = 0  # workers replaced so far

    def wait_ready(self) -> list[Any]:
        """How each worker describes what it has built, as soon as that is done."""
        return [self._wait_ready(one) for one in self.workers]

    def _wait_ready(self, one: WorkerProcess) -> Any:
        description = one.wait_ready()
        one.set_timeout(self.timeout)
        return description

    def run(
        self, command: bytes, workers: Sequence[WorkerProcess] | None = None
    ) -> list[LostWorker]:
        """Run a command in all workers, or in those given; returns those that were lost."""
        self.send(command, workers)
        return self.wait(workers)

    def require(self, command: bytes, workers: Sequence[WorkerProcess] | None = None) -> None:
        """Run a command, and raise an error if a worker is lost."""
        self.raise_lost(self.run(command, workers))

    def send(self, command: bytes, workers: Sequence[WorkerProcess] | None = None) -> None:
        """Start a command; a worker that is gone will not reply."""
        for one in self.workers if workers is None else workers:
            one.send(command)

    def wait(self, workers: Sequence[WorkerProcess] | None = None) -> list[LostWorker]:
        """Wait for the reply of each worker; an error of one is raised when all have replied."""
        lost: list[LostWorker] = []
        errors: list[Exception] = []
        timed_out = False
        # In order, not as they reply: all are awaited anyway, and this wakes up less often.
        for one in self.workers if workers is None else workers:
            try:
                if timed_out and one.progress is None and not one.has_replied():
                    raise BlockingIOError
                reply = one.read_reply()
            except BlockingIOError:
                timed_out = True
                lost.append(LostWorker(one, f"hung for {self.timeout:g} s"))
                continue
            if reply == worker.ERROR:
                errors.append(one.receive_error())
            elif not reply:
                lost.append(LostWorker(one, "died"))
        if errors:
            raise errors[0]
        return lost

    def results(self, lost: Sequence[LostWorker] = ()) -> list[Any]:
        """What each worker sends after its reply, in order; None for one that was lost."""
        gone = {id(one) for one, _ in lost}
        return [None if id(one) in gone else one.connection.recv() for one in self.workers]

    def raise_lost(self, lost: Sequence[LostWorker]) -> None:
        """Raise an error that names the first of these workers, if there is one."""
        for one, reason in lost:
            raise one.fault(reason, one.exit_report())

    def replace(self, one: WorkerProcess, reason: str) -> None:
        """Start a worker anew, again if it dies meanwhile; an error if that was done too often."""
        while True:
            self._restart(one, reason)
            try:
                self._wait_ready(one)
                return
            except DiedWhileStarting:
                reason = "died while starting"

    def _restart(self, one: WorkerProcess, reason: str) -> None:
        report = one.exit_report()
        one.kill()
        now = time.monotonic()
        one.restart_times = [at for at in one.restart_times if now - at < RESTART_WINDOW]
        if len(one.restart_times) >= self.max_restarts:
            often = f"max_restarts = {self.max_restarts} restarts within {RESTART_WINDOW:g} s"
            raise one.fault(f"{reason}, after {often}", report)
        warnings.warn(
            f"{one.fault(reason, report)}; restarted, its episodes are lost", stacklevel=5
        )
        time.sleep(RESTART_DELAY * 2 ** len(one.restart_times))
        one.restart_times.append(now)
        self.restarts += 1
        one.launch()
