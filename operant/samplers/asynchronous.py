"""Collecting while the agent learns."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from operant.core import tree
from operant.core.experience import Experience, TrajInfo
from operant.samplers.parallel import ParallelSampler


class AsyncSampler(ParallelSampler):
    """Hands out one chunk while workers fill the other, with the weights as they are then.

    So what is learned from is one rollout old, never more, and the same under one seed whatever
    the speed of either side. `metrics` tells how many updates of the weights that was.
    """

    buffers = 2

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.running = False  # whether workers are at a chunk
        self.whole: list[TrajInfo] | None = None  # the episodes of a chunk that nobody took yet
        self.version = 0  # updates of the weights before the chunk was begun
        super().__init__(*args, **kwargs)
        self.seconds["idling"] = 0.0  # that workers waited for the learner

    def obtain_samples(self, itr: int) -> tuple[Experience, list[TrajInfo]]:
        """The chunk under way, when it is whole, and its episodes; the next one begins."""
        if self.whole is None and not self.running:
            self._start(0)
        begin = perf_counter()
        self._settle()
        self.seconds["waiting"] += perf_counter() - begin
        chunk, finished = self.cache.read(), self.whole or []
        self.metrics = {"staleness": float(self.agent.updates - self.version)}
        self._take_over()
        self.whole = None
        self._start(1 - self.caches.index(self.cache))
        return chunk, finished

    def _start(self, buffer: int) -> None:
        self._begin(self.caches[buffer])
        self.running, self.began, self.version = True, perf_counter(), self.agent.updates

    def _settle(self) -> None:
        """Wait for the chunk under way."""
        if self.running:
            self.running = False
            _, self.whole = self._finish()
            busy = self._count_work()
            self.seconds["idling"] += max(0.0, perf_counter() - self.began - busy)

    def state_dict(self) -> dict[str, Any]:
        """As in the synchronous case, after waiting for the chunk under way, and that chunk."""
        self._settle()
        state = super().state_dict()
        if self.whole is not None:
            chunk = tree.map(np.copy, dict(self.cache.arrays.items()))
            for x in chunk["final_observation"].values():
                x[~chunk["replaced"]] = 0  # what nobody reads would differ from run to run
            state["pending"] = {
                "chunk": chunk,
                "finished": [tuple(info) for info in self.whole],
                "version": self.version,
                "acted": int(self.desk.acted[self.left]),
                "generator": self.desk.generator[self.left].copy(),
            }
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave."""
        self._settle()
        self.whole = None
        super().load_state_dict(state)
        pending = state.get("pending")
        if pending is None:
            return
        for name, part in pending["chunk"].items():
            tree.write(getattr(self.cache.arrays, name), slice(None), part)
        self.cache.cursor, self.left = self.cache.length, 1
        self.whole = [TrajInfo(*info) for info in pending["finished"]]
        self.version = int(pending["version"])
        self.desk.acted[1], self.desk.generator[1] = pending["acted"], pending["generator"]
