"""Collecting while the agent learns."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from operant.core import tree
from operant.core.experience import Experience, TrajInfo
from operant.samplers.parallel import ParallelSampler


class AsyncSampler(ParallelSampler):
    """Returns one chunk while workers fill the other, with the weights as they are then.

    So what is learned from is one chunk old, never more, and the same under one seed whatever the
    speed of either side. `metrics["staleness"]` is how many updates of the weights that was.
    """

    chunk_count = 2
    activities = (*ParallelSampler.activities, "idling")  # workers waiting for the learner
    running = False  # whether workers are filling a chunk
    complete: list[TrajInfo] | None = None  # the episodes of a chunk that is not returned yet
    version = 0  # updates of the weights before the chunk was begun
    began = 0.0  # when that was

    def obtain_samples(self, itr: int) -> tuple[Experience, list[TrajInfo]]:
        """The chunk under way, when it is complete, and its episodes; the next one begins."""
        if self.complete is None and not self.running:
            self._start(0)
        begin = perf_counter()
        self._settle()
        self.seconds["waiting"] += perf_counter() - begin
        chunk, finished = self.cache.read(), self.complete or []
        self.metrics = {"staleness": float(self.agent.updates - self.version)}
        self._carry_on()
        self.complete = None
        self._start(1 - self.caches.index(self.cache))
        return chunk, finished

    def _start(self, index: int) -> None:
        self._start_chunk(self.caches[index])
        self.running, self.began, self.version = True, perf_counter(), self.agent.updates

    def _settle(self) -> None:
        """Wait for the chunk under way."""
        if self.running:
            self.running = False
            _, self.complete = self._finish_chunk()
            busy = self._count_work()
            self.seconds["idling"] += max(0.0, perf_counter() - self.began - busy)

    def state_dict(self) -> dict[str, Any]:
        """As in the synchronous case, after waiting for the chunk under way, and that chunk."""
        self._settle()
        state = super().state_dict()
        if self.complete is not None:
            fields = {k: x for k, x in self.cache.arrays.items() if x is not None}
            chunk = tree.map(np.copy, fields)
            for x in chunk["final_observation"].values():
                x[~chunk["replaced"]] = 0  # what nobody reads would differ from run to run
            state["pending"] = {
                "chunk": chunk,
                "finished": [tuple(info) for info in self.complete],
                "version": self.version,
                "carried": self.buffers.read_carried(self.last_row),
            }
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave."""
        self._settle()
        self.complete = None
        super().load_state_dict(state)
        pending = state.get("pending")
        if pending is None:
            return
        for name, part in pending["chunk"].items():
            tree.write(getattr(self.cache.arrays, name), slice(None), part)
        self.cache.cursor, self.last_row = self.cache.length, 1
        self.complete = [TrajInfo(*info) for info in pending["finished"]]
        self.version = int(pending["version"])
        self.buffers.write_carried(1, pending["carried"])
