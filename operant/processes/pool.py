"""Worker processes as one: ask all of them, wait for all of them, replace those that are lost."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from multiprocessing.util import Finalize
from typing import Any

from operant.processes import worker
from operant.processes.process import WorkerProcess, shut_down

Lost = tuple[WorkerProcess, str]  # and what became of it
WINDOW = 600.0  # seconds within which restarts of a worker are counted
PAUSE = 0.05  # seconds before the first restart; each further one in the window waits twice as long


class Crew:
    """Workers, of which each has at most one thing to do at a time."""

    def __init__(self, owner: object, timeout: float, max_restarts: int) -> None:
        self.timeout, self.max_restarts = timeout, max_restarts
        self.workers: list[WorkerProcess] = []
        self.close = Finalize(owner, shut_down, (self.workers,), exitpriority=10)
        self.restarts = 0  # workers replaced so far

    def meet(self) -> list[Any]:
        """What every worker says of its environments, once it has built them."""
        return [self._meet(one) for one in self.workers]

    def _meet(self, one: WorkerProcess) -> Any:
        told = one.meet()
        one.patience(self.timeout)
        return told

    def ask(self, command: bytes, workers: Sequence[WorkerProcess] | None = None) -> list[Lost]:
        """Have workers, all unless some are named, do something; which of them could not."""
        self.tell(command, workers)
        return self.answers(workers)

    def tell(self, command: bytes, workers: Sequence[WorkerProcess] | None = None) -> None:
        """Have workers begin something; one that is gone will give no answer."""
        for one in self.workers if workers is None else workers:
            one.ask(command)

    def answers(self, workers: Sequence[WorkerProcess] | None = None) -> list[Lost]:
        """Wait for an answer of each worker; an error of theirs is raised when all have spoken."""
        lost: list[Lost] = []
        errors: list[Exception] = []
        late = False
        # In turn, not whoever is first: all are awaited anyway, and this wakes up less often.
        for one in self.workers if workers is None else workers:
            try:
                if late and one.progress is None and one.silent():
                    raise BlockingIOError
                answered = one.answered()
            except BlockingIOError:
                late = True
                lost.append((one, f"hung for {self.timeout:g} s"))
                continue
            if answered == worker.ERROR:
                errors.append(one.told_error())
            elif not answered:
                lost.append((one, "died"))
        if errors:
            raise errors[0]
        return lost

    def insist(self, lost: list[Lost]) -> None:
        """Do not go on without a worker."""
        for one, why in lost:
            raise one.fault(why, one.last_words())

    def replace(self, one: WorkerProcess, why: str) -> None:
        """Build its environments in a new process, or give up when it was replaced too often."""
        words = one.last_words()
        one.let_go()
        now = time.monotonic()
        one.restarts = [at for at in one.restarts if now - at < WINDOW]
        if len(one.restarts) >= self.max_restarts:
            raise one.fault(
                f"{why}, after max_restarts = {self.max_restarts} restarts within {WINDOW:g} s",
                words,
            )
        warnings.warn(f"{one.fault(why, words)}; restarted, its episodes are lost", stacklevel=4)
        time.sleep(PAUSE * 2 ** len(one.restarts))
        one.restarts.append(now)
        self.restarts += 1
        one.launch()
        self._meet(one)
