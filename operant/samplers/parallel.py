"""Acting and stepping in worker processes, each for its own environments.

Weights, random numbers and the chunk lie in shared memory: a batch costs each worker two bytes and
one message with the episodes that ended. What a worker knows besides are its environments, so
that one which is lost is replaced by one that begins new episodes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from multiprocessing.util import Finalize
from time import perf_counter
from typing import Any

import numpy as np

from operant.core import tree
from operant.core.errors import UsageError
from operant.core.experience import Arrays, Experience, Metrics, TrajInfo
from operant.core.protocols import Agent, EnvironmentManager, Rows
from operant.core.seeds import derived
from operant.core.spaces import Spaces, is_mask
from operant.core.state import restore, state_of
from operant.memory.rollout import RolloutCache
from operant.processes.pool import Crew, Lost
from operant.processes.process import WorkerProcess, anonymous_memory
from operant.processes.weights import pack, publish
from operant.processes.worker import LOAD, SAVE
from operant.samplers.collector import ACTIVITIES, Collecting, check_finite, in_order
from operant.samplers.evaluate import Evaluated, Evaluation
from operant.samplers.joint_manager import Bounds, JointManager
from operant.samplers.rounding import check_rounding
from operant.samplers.sampler_worker import BATCH, BEGIN, EXACT, Post, serve
from operant.samplers.serial import example
from operant.samplers.shared_buffers import Layout, mapped, size_of
from operant.samplers.trajectory import TrajTracker

Share = tuple[int, Callable[[], EnvironmentManager]]  # how many environments, and what makes them


class ParallelSampler(Evaluated):
    """A few workers, several environments each, that fill their columns of one chunk.

    Under one seed the chunks are those of SerialSampler over the same environments, bit for bit,
    and so are its states. The chunk is one buffer that the next call overwrites.
    """

    buffers = 1
    agent: Agent

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
        self.actor: Any = agent.actor.portable()
        self.seconds = dict.fromkeys((*ACTIVITIES, "waiting"), 0.0)
        self.metrics: Metrics = {}
        self.batches = self.left = 0
        self._exact: bool | None = None
        self.crew = Crew(self, timeout, max_restarts)
        ends = [0, *accumulate(count for count, _ in shares)]
        self.bounds: Bounds = list(pairwise(ends))
        try:
            for (_, make), bound in zip(shares, self.bounds, strict=True):
                self.crew.workers.append(WorkerProcess(serve, make, *bound))
            self._share(self.crew.meet())
            self._begin_all()
        except BaseException:
            self.close()
            raise

    def _share(self, told: list[Any]) -> None:
        """Lay out the desk, and give every worker its place."""
        spaces, frames_per_step, _ = told[0]
        for (start, _), (other, *_) in zip(self.bounds, told, strict=True):
            if other != spaces:
                raise UsageError(f"environment {start} has {other}; expected {spaces} as in 0")
        self.manager = JointManager(self, spaces, frames_per_step)
        self.packed = pack(self.actor)
        row = tree.map(lambda x: x[:0], example(self.agent, _blank(spaces)))
        generator = len(self.actor.generator.get_state())
        envs = self.bounds[-1][1]
        sizes = (len(told), envs, self.plan.length, self.buffers)
        self.layout = Layout(*sizes, row, self.packed.forms, generator)
        self.memory = anonymous_memory(size_of(self.layout))
        self.release = Finalize(self, os.close, (self.memory,))
        self.desk = mapped(self.layout, self.memory)
        self.caches = [RolloutCache(self.plan.length) for _ in self.desk.chunks]
        for cache, chunk in zip(self.caches, self.desk.chunks, strict=True):
            cache.adopt(chunk)
        self.cache = self.caches[0]
        self.tracker = TrajTracker(envs, self.desk.rewards, self.desk.lengths)
        for i, one in enumerate(self.crew.workers):
            self._attach(i, one)

    def _attach(self, i: int, one: WorkerProcess) -> None:
        rows = Rows(one.start, one.stop, self.bounds[-1][1])
        one.attach(Post(i, rows, self.layout, self.plan, self.packed.data), self.memory)
        progress = self.desk.progress  # not `self`, which must not live as long as the process
        one.progress = lambda: int(progress[i])

    def _begin_all(self) -> None:
        publish(self.packed.weights, self.desk.weights)
        self.desk.seed[0], self.desk.warm[0] = self.plan.seed, self.plan.decorrelate
        self.crew.insist(self.crew.ask(BEGIN))
        if self.actor is self.agent.actor:
            check_rounding(self.actor, self.cache, self.bounds)

    def obtain_samples(self, itr: int) -> tuple[Experience, list[TrajInfo]]:
        """The next chunk `[T, B]`, and the episodes that ended in it."""
        begin = perf_counter()
        self._begin(self.cache)
        chunk, finished = self._finish()
        self._take_over()
        spent = perf_counter() - begin
        self.seconds["waiting"] += max(0.0, spent - self._count_work())
        return chunk, finished

    def _begin(self, cache: RolloutCache) -> None:
        """Have the workers fill `cache` from where the last one ended."""
        if self.cache.cursor > 0 or cache is not self.cache:
            cache.go_on_from(self.cache)
        self.cache = cache
        publish(self.packed.weights, self.desk.weights)
        self.desk.buffer[0] = self.caches.index(cache)
        self.desk.give(self.actor)
        self.crew.tell(BATCH)

    def _finish(self) -> tuple[Experience, list[TrajInfo]]:
        """Wait for the batch under way."""
        lost = self.crew.answers()
        told = self._told(lost)
        self.batches += 1
        heard = [1 + i for i, infos in enumerate(told) if infos is not None]
        self.left = heard[0] if heard else 0  # all have drawn the same
        self.cache.cursor = self.cache.length
        for one, why in lost:
            self._cut(one)
            self._replace(one, why)
        chunk = self.cache.read()
        check_finite(chunk)
        return chunk, in_order(chunk, self.bounds, [infos or [] for infos in told])

    def _told(self, lost: list[Lost]) -> list[list[TrajInfo] | None]:
        gone = {id(one) for one, _ in lost}
        return [None if id(one) in gone else one.talk.recv() for one in self.crew.workers]

    def _cut(self, one: WorkerProcess) -> None:
        """What a lost worker collected counts for nothing; episodes under way were cut off."""
        part = tree.index(self.cache.arrays, (slice(None), slice(one.start, one.stop)))
        running = ~part.first[0]
        for name in ("reward", "terminated", "truncated", "valid", "replaced"):
            getattr(part, name)[:] = 0
        part.truncated[0] = part.replaced[0] = running
        tree.write(part.final_observation, 0, tree.index(part.observation, 0))
        part.first[1:] = True

    def _replace(self, one: WorkerProcess, why: str) -> None:
        """Begin new episodes in a new process."""
        self.crew.replace(one, why)
        self._attach(self.crew.workers.index(one), one)
        desk = self.desk
        desk.seed[0] = derived(self.plan.seed, self.batches, self.crew.restarts)
        desk.cursor[0], desk.warm[0] = self.cache.length, 0
        for again, reason in self.crew.ask(BEGIN, [one]):
            self._replace(again, reason)

    def _take_over(self) -> None:
        """Let the agent go on from the random numbers that the batch left."""
        self.desk.take(self.actor, self.left)
        self.agent.actor.acted = self.actor.acted

    def _count_work(self) -> float:
        """Add what the workers did on average; the seconds that it took."""
        spent = self.desk.seconds.mean(0).tolist()
        for name, seconds in zip(ACTIVITIES, spent, strict=True):
            self.seconds[name] += seconds
        return float(sum(spent))

    def _settle(self) -> None:
        """Wait until no worker is at anything; here none ever is between calls."""

    def exact(self) -> bool:
        """Whether the environments can be taken up again bit for bit."""
        if self._exact is None:
            self._settle()
            one = self.crew.workers[0]
            self.crew.insist(self.crew.ask(EXACT, [one]))
            self._exact = bool(one.talk.recv())
        return self._exact

    def capture(self) -> list[dict[str, Any]]:
        """The state of each worker's environments."""
        self.crew.insist(self.crew.ask(SAVE))
        return [one.talk.recv() for one in self.crew.workers]

    def restore(self, states: list[dict[str, Any]]) -> None:
        """Put the states of the environments back."""
        self.crew.tell(LOAD)
        for one, state in zip(self.crew.workers, states, strict=True):
            one.talk.send(state)
        self.crew.insist(self.crew.answers())

    def close(self) -> None:
        """End every process within a few seconds, at once where a step is short."""
        if hasattr(self, "desk"):
            self.desk.stop[0] = 1
        self.crew.close()
        if hasattr(self, "release"):
            self.release()

    def state_dict(self) -> dict[str, Any]:
        """The environments, the episodes under way and what to act on next."""
        state = state_of(self, "manager", "cache", "tracker")
        if self.actor is not self.agent.actor:  # else it is the agent's to save
            state["generator"] = self.actor.generator.get_state()
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave; episodes that cannot be continued start anew."""
        restore(self, state, "manager", "cache", "tracker")
        if "generator" in state and self.actor is not self.agent.actor:
            self.actor.generator.set_state(state["generator"])


def _blank(spaces: Spaces) -> Arrays:
    """Observations of one environment that show nothing and forbid nothing."""
    return {
        name: np.full((1, *(space.shape or ())), int(is_mask(name)), space.dtype)
        for name, space in spaces.observation.items()
    }
