"""What a worker process of a sampler does: it acts and steps by itself, one command a chunk."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import NamedTuple

import torch

from operant.core import tree
from operant.core.protocols import EnvironmentManager, Rows
from operant.core.spaces import Spaces
from operant.memory.rollout import RolloutCache
from operant.processes.shared_memory import ArrayAllocator
from operant.processes.weights import unpack
from operant.processes.worker import Commands, Pipes, run_service
from operant.samplers.collector import Collecting, Collector, Ended
from operant.samplers.shared_buffers import BufferLayout, SharedBuffers
from operant.samplers.trajectory import TrajTracker

COLLECT, BEGIN, EXACT, SAVE, LOAD = b"s", b"r", b"x", b"g", b"p"
PRELOAD = ("operant.envs.providers.gymnasium",)


class ManagerDescription(NamedTuple):
    """What the sampler must know of a worker's environments."""

    spaces: Spaces
    frames_per_step: int


class WorkerSetup(NamedTuple):
    """All that a worker is sent besides what makes its environments."""

    worker: int  # its index
    rows: Rows
    layout: BufferLayout
    plan: Collecting
    actor: bytes  # packed


class RemoteCollector:
    """A collector that reads its orders from shared buffers, and fills its part of their chunks."""

    def __init__(
        self, manager: EnvironmentManager, setup: WorkerSetup, buffers: SharedBuffers
    ) -> None:
        self.buffers, self.index = buffers, setup.worker
        start, stop, total = setup.rows
        self.actor = unpack(setup.actor, setup.layout.weights, buffers.weights)
        self.actor.rows = setup.rows if stop - start < total else None
        self.caches = [RolloutCache(setup.plan.length) for _ in buffers.chunks]
        for cache, chunk in zip(self.caches, buffers.chunks, strict=True):
            cache.adopt(tree.index(chunk, (slice(None), slice(start, stop))))
        tracker = TrajTracker.over(buffers.sums, manager.spaces.agents).part(start, stop)
        self.collector = Collector(
            manager, self.actor, self.caches[0], setup.plan, setup.rows, tracker, self.keep_going
        )

    def keep_going(self) -> bool:
        """Count a step as progress; false if the sampler is closing."""
        self.buffers.progress[self.index] += 1
        return not self.buffers.stop[0]

    def begin(self) -> None:
        """Begin new episodes, with the seed and at the row of the chunk in the buffers."""
        b = self.buffers
        self._go_to(int(b.cursor[0]))
        self.collector.start_envs(int(b.seed[0]), int(b.decorrelate[0]))
        self.collector.start_agent()

    def collect(self) -> list[Ended]:
        """Fill this worker's part of a chunk; returns the episodes that ended."""
        self._go_to(0)
        self.actor.carry_on(self.buffers.read_carried(0))
        finished = self.collector.collect_batch(0)
        self.buffers.write_carried(1 + self.index, self.actor.carried())
        seconds = self.collector.seconds
        self.buffers.seconds[self.index] = list(seconds.values())
        for name in seconds:
            seconds[name] = 0.0
        return list(zip(self.collector.ends, finished, strict=True))

    def _go_to(self, cursor: int) -> None:
        self.collector.cache = self.caches[int(self.buffers.chunk[0])]
        self.collector.cache.cursor = cursor


class SamplerService:
    """Collects chunks for its environments when it is asked to."""

    def __init__(self, make_manager: Callable[[], EnvironmentManager]) -> None:
        torch.set_num_threads(1)
        self.manager = make_manager()

    def describe(self) -> ManagerDescription:
        """The spaces of the environments."""
        return ManagerDescription(self.manager.spaces, self.manager.frames_per_step)

    def attach(self, message: WorkerSetup, memory: int, connection: Connection) -> Commands:
        """Take some columns of the chunks in shared memory."""
        buffers = SharedBuffers.allocate(message.layout, ArrayAllocator.over(memory))
        remote, manager = RemoteCollector(self.manager, message, buffers), self.manager
        return {
            BEGIN: remote.begin,
            COLLECT: remote.collect,
            EXACT: lambda: manager.exact,
            SAVE: manager.state_dict,
            LOAD: lambda: manager.load_state_dict(connection.recv()),
        }

    def close(self) -> None:
        """Close the environments."""
        self.manager.close()


def serve(pipes: Pipes, data: bytes) -> None:
    """The main function of the process; `data` is a pickled function that makes a manager."""
    run_service(SamplerService, pipes, data)
