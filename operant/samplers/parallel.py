"""Acting and stepping in worker processes, each for its own environments.

Weights, random generators and the chunk lie in shared memory: a chunk costs each worker two bytes
and one message with the episodes that ended. The only state that a worker has for itself are its
environments, so one that is lost is replaced by one that begins new episodes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate, pairwise
from multiprocessing.util import Finalize
from time import perf_counter
from typing import Any

import numpy as np

from operant.core import tree
from operant.core.errors import UsageError
from operant.core.experience import Arrays, Experience, TrajInfo
from operant.core.protocols import Actor, Agent, EnvironmentManager, Rows
from operant.core.seeds import derived
from operant.core.spaces import Spaces, is_mask
from operant.memory.rollout import RolloutCache
from operant.processes.pool import WorkerPool
from operant.processes.process import WorkerProcess, row_range
from operant.processes.shared_memory import ArrayAllocator, anonymous_memory, size_of
from operant.processes.weights import pack, publish
from operant.samplers import sampler_worker
from operant.samplers.collector import ACTIVITIES, Collecting, Ended, check_finite, in_order
from operant.samplers.evaluate import Evaluation
from operant.samplers.joint_manager import Bounds, JointManager
from operant.samplers.rounding import check_rounding
from operant.samplers.sampler import ChunkSampler
from operant.samplers.sampler_worker import ManagerDescription, WorkerSetup
from operant.samplers.serial import example
from operant.samplers.shared_buffers import BufferLayout, SharedBuffers
from operant.samplers.trajectory import TrajTracker
from operant.samplers.worker_managers import WorkerManagers

Share = tuple[int, Callable[[], EnvironmentManager]]  # how many environments, and what makes them


class ParallelSampler(ChunkSampler):
    """A few workers, several environments each, that fill their columns of one chunk.

    Under one seed the chunks are those of SerialSampler over the same environments, bit for bit,
    and so are its states. The chunk is one buffer that the next call overwrites.
    """

    chunk_count = 1  # in shared memory
    activities: tuple[str, ...] = (*ACTIVITIES, "waiting")  # for the slowest worker

    def __init__(
        self,
        shares: Sequence[Share],
        agent: Agent,
        plan: Collecting,
        evaluation: Evaluation | None = None,
        timeout: float = 60.0,
        max_restarts: int = 3,
    ) -> None:
        super().__init__(agent, evaluation)
        self.plan = plan
        self.actor: Actor = agent.actor.portable()
        self.seconds = dict.fromkeys(self.activities, 0.0)
        self.collected = 0  # chunks
        self.last_row = 0  # of what actors carry on: where the last chunk left it
        self.pool = WorkerPool(self, timeout, max_restarts)
        self._closing: list[Callable[[], object]] = [self.pool.close]
        self.bounds: Bounds = list(pairwise([0, *accumulate(count for count, _ in shares)]))
        try:
            for (_, make), bound in zip(shares, self.bounds, strict=True):
                self.pool.workers.append(_start_worker(make, bound))
            self._share(self.pool.wait_ready())
            self._begin_all()
        except BaseException:
            self.close()
            raise

    def _share(self, descriptions: list[ManagerDescription]) -> None:
        """Allocate the shared memory, and attach every worker to it."""
        spaces, frames_per_step = descriptions[0]
        for (start, _), (other, _) in zip(self.bounds, descriptions, strict=True):
            if other != spaces:
                raise UsageError(
                    f"environment {start} has {other}; expected {spaces} as in environment 0"
                )
        group = WorkerManagers(self.pool, self.bounds, self._settle, self.close)
        self.manager = JointManager(group, spaces, frames_per_step)
        self.packed = pack(self.actor)
        self.layout = self._layout(spaces)
        allocate = partial(SharedBuffers.allocate, self.layout)
        self.memory = anonymous_memory(size_of(allocate))
        release = Finalize(self, os.close, (self.memory,))
        self.buffers = b = allocate(ArrayAllocator.over(self.memory))
        self._closing = [partial(b.stop.fill, 1), self.pool.close, release]
        self.caches = [RolloutCache(self.plan.length) for _ in b.chunks]
        for cache, chunk in zip(self.caches, b.chunks, strict=True):
            cache.adopt(chunk)
        self.cache = self.caches[0]
        self.tracker = TrajTracker.over(b.sums, spaces.agents)
        for i, one in enumerate(self.pool.workers):
            self._attach(i, one)

    def _layout(self, spaces: Spaces) -> BufferLayout:
        shown = example(self.agent, _blank(spaces), len(spaces.agents))
        row = tree.map(lambda x: x[:0], shown)
        sizes = (len(self.bounds), self.bounds[-1][1], self.plan.length, self.chunk_count)
        return BufferLayout(*sizes, row, self.packed.layouts, self.actor.carried())

    def _attach(self, i: int, one: WorkerProcess) -> None:
        rows = Rows(one.start, one.stop, self.layout.envs)
        one.attach(WorkerSetup(i, rows, self.layout, self.plan, self.packed.data), self.memory)
        progress = self.buffers.progress  # not `self`, which must not live as long as the process
        one.progress = lambda: int(progress[i])

    def _begin_all(self) -> None:
        b = self.buffers
        publish(self.packed.weights, b.weights)
        b.seed[0], b.decorrelate[0] = self.plan.seed, self.plan.decorrelate
        self.pool.require(sampler_worker.BEGIN)
        if self.actor is self.agent.actor:
            check_rounding(self.actor, self.cache, self.bounds)

    def obtain_samples(self, itr: int) -> tuple[Experience, list[TrajInfo]]:
        """The next chunk `[T, B]`, and the episodes that ended in it."""
        begin = perf_counter()
        self._start_chunk(self.cache)
        chunk, finished = self._finish_chunk()
        self._carry_on()
        spent = perf_counter() - begin
        self.seconds["waiting"] += max(0.0, spent - self._count_work())
        return chunk, finished

    def _start_chunk(self, cache: RolloutCache) -> None:
        """Have the workers fill `cache` from where the last one ended."""
        if self.cache.cursor > 0 or cache is not self.cache:
            cache.go_on_from(self.cache)
        self.cache = cache
        publish(self.packed.weights, self.buffers.weights)
        self.buffers.chunk[0] = self.caches.index(cache)
        if self.actor is not self.agent.actor:
            self.actor.carry_on(_without_generator(self.agent.actor.carried()))
        self.buffers.write_carried(0, self.actor.carried())
        self.pool.send(sampler_worker.COLLECT)

    def _finish_chunk(self) -> tuple[Experience, list[TrajInfo]]:
        """Wait for the chunk under way."""
        lost = self.pool.wait()
        finished: list[list[Ended] | None] = self.pool.results(lost)
        self.collected += 1
        present = [1 + i for i, infos in enumerate(finished) if infos is not None]
        self.last_row = present[0] if present else 0  # all actors have drawn the same
        self.cache.cursor = self.cache.length
        for one, reason in lost:
            self._invalidate(one)
            self._replace(one, reason)
        chunk = self.cache.read()
        check_finite(chunk)
        return chunk, in_order(self.bounds, [infos or [] for infos in finished])

    def _invalidate(self, one: WorkerProcess) -> None:
        """Make the columns of a lost worker not valid, and truncate its episodes under way."""
        part = tree.index(self.cache.arrays, (slice(None), slice(one.start, one.stop)))
        running = ~part.first[0]
        for name in ("reward", "terminated", "truncated", "valid", "replaced"):
            getattr(part, name)[:] = 0
        tree.map(lambda x: x.fill(0), part.agents)
        part.truncated[0] = part.replaced[0] = running
        tree.write(part.final_observation, 0, tree.index(part.observation, 0))
        part.first[1:] = True

    def _replace(self, one: WorkerProcess, reason: str) -> None:
        """Begin new episodes in a new process."""
        self.pool.replace(one, reason)
        self._attach(self.pool.workers.index(one), one)
        b = self.buffers
        b.seed[0] = derived(self.plan.seed, self.collected, self.pool.restarts)
        b.cursor[0], b.decorrelate[0] = self.cache.length, 0
        for again, why in self.pool.run(sampler_worker.BEGIN, [one]):
            self._replace(again, why)

    def _carry_on(self) -> None:
        """Let the agent act on from where the workers left off."""
        carried = self.buffers.read_carried(self.last_row)
        self.actor.carry_on(carried)
        if self.actor is not self.agent.actor:
            self.agent.actor.carry_on(_without_generator(carried))

    def _count_work(self) -> float:
        """Add the workers' mean seconds by activity; returns their sum."""
        spent = self.buffers.seconds.mean(0).tolist()
        for name, seconds in zip(ACTIVITIES, spent, strict=True):
            self.seconds[name] += seconds
        return float(sum(spent))

    def _settle(self) -> None:
        """Wait until no worker is busy; here none ever is between calls."""

    def close(self) -> None:
        """End every process within a few seconds, at once where a step is short."""
        for action in self._closing:
            action()

    def state_dict(self) -> dict[str, Any]:
        """The environments, the episodes under way and what to act on next."""
        state = super().state_dict()
        if self.actor is not self.agent.actor:  # else it is the agent's to save
            state |= _generators(self.actor.carried())
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave; episodes that cannot be continued start anew."""
        super().load_state_dict(state)
        if self.actor is not self.agent.actor:
            self.actor.carry_on(_generators(state))


def _start_worker(make: Callable[[], EnvironmentManager], bound: tuple[int, int]) -> WorkerProcess:
    name = f"environments {row_range(*bound)}"
    return WorkerProcess(sampler_worker.serve, make, bound, name, sampler_worker.PRELOAD)


def _without_generator(carried: Arrays) -> Arrays:
    """What actors on two devices share: their random generators are of different kinds."""
    return {name: x for name, x in carried.items() if name not in _generators(carried)}


def _generators(carried: Arrays) -> Arrays:
    """The state of the random generator, or of that of each of several agents."""
    return {name: x for name, x in carried.items() if name.rpartition(".")[2] == "generator"}


def _blank(spaces: Spaces) -> Arrays:
    """Observations of one environment: zeros, with masks that allow every action."""
    return {
        name: np.full((1, *(space.shape or ())), int(is_mask(name)), space.dtype)
        for name, space in spaces.observation.items()
    }
