"""The environments that a sampler's workers hold."""

from __future__ import annotations

import warnings
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
        self._incomplete = False  # the last state lacks the environments of a worker that was gone

    def count_restarts(self) -> int:
        """Workers replaced so far."""
        return self.pool.restarts

    def all_exact(self) -> bool:
        """Whether the environments can be resumed bit for bit; one worker finds out for all."""
        if self._exact is None:
            self.settle()
            # One that is gone cannot tell, and is replaced when the next chunk is collected.
            alive = (x for x in self.pool.workers if not self.pool.run(sampler_worker.EXACT, [x]))
            one = next(alive, None)
            if one is None:
                return False
            self._exact = bool(one.connection.recv())
        return self._exact and not self._incomplete

    def save_each(self) -> list[dict[str, Any]]:
        """The state of each worker's environments; of one that is gone, that it has none."""
        self.settle()
        lost = self.pool.run(sampler_worker.SAVE)
        states = self.pool.results(lost)
        self._incomplete = bool(lost)
        for one, reason in lost:
            gone = one.fault(f"{reason} between two rollouts", one.exit_report())
            warnings.warn(f"{gone}; this checkpoint begins new episodes", stacklevel=2)
        known = next((state for state in states if state), {"seed": 0, "steps": 0})
        none = {"seed": known["seed"], "steps": known["steps"], "exact": False}
        return [state or none for state in states]

    def load_each(self, states: list[dict[str, Any]]) -> None:
        """Put the states of the environments back."""
        self.pool.send(sampler_worker.LOAD)
        for one, state in zip(self.pool.workers, states, strict=True):
            one.connection.send(state)
        self.pool.raise_lost(self.pool.wait())
