"""The environments that a sampler's workers hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from operant.processes.pool import WorkerPool
from operant.samplers import sampler_worker
from operant.samplers.joint_manager import Bounds


class WorkerManagers:
    """The managers of all workers, as a ManagerGroup. `settle` waits until no worker is busy."""

    def __init__(
        self,
        pool: WorkerPool,
        bounds: Bounds,
        settle: Callable[[], None],
        close: Callable[[], None],
    ) -> None:
        self.pool, self.bounds, self.settle, self.close = pool, bounds, settle, close
        self._exact: bool | None = None

    def all_exact(self) -> bool:
        """Whether the environments can be resumed bit for bit; one worker finds out for all."""
        if self._exact is None:
            self.settle()
            one = self.pool.workers[0]
            self.pool.require(sampler_worker.EXACT, [one])
            self._exact = bool(one.connection.recv())
        return self._exact

    def save_each(self) -> list[dict[str, Any]]:
        """The state of each worker's environments."""
        self.settle()
        self.pool.require(sampler_worker.SAVE)
        return [one.connection.recv() for one in self.pool.workers]

    def load_each(self, states: list[dict[str, Any]]) -> None:
        """Put the states of the environments back."""
        self.pool.send(sampler_worker.LOAD)
        for one, state in zip(self.pool.workers, states, strict=True):
            one.connection.send(state)
        self.pool.raise_lost(self.pool.wait())
