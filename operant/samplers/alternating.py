"""Two halves of the environments: one steps while the other's actions are computed."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from time import perf_counter
from typing import Any

import numpy as np

from operant.core import tree
from operant.core.errors import UsageError
from operant.core.experience import Arrays, Decision, EnvStep, Experience, TrajInfo
from operant.core.protocols import Actor, Agent, EnvironmentManager, Rows, SplitStepManager
from operant.memory.rollout import RolloutCache
from operant.samplers.autocast import cached_autocast
from operant.samplers.collector import ACTIVITIES, Collecting, Collector, check_finite, in_order
from operant.samplers.evaluate import Evaluation
from operant.samplers.joint_manager import Bounds, JointManager
from operant.samplers.rounding import check_rounding
from operant.samplers.sampler import ChunkSampler
from operant.samplers.serial import chunk_for
from operant.samplers.trajectory import TrajTracker


class AlternatingSampler(ChunkSampler):
    """Acts for one half while the other half steps, in processes or in code without the GIL.

    The chunk it returns is one buffer that the next call overwrites.
    """

    def __init__(
        self,
        halves: Sequence[EnvironmentManager],
        agent: Agent,
        plan: Collecting,
        evaluation: Evaluation | None = None,
    ) -> None:
        super().__init__(agent, evaluation)
        self.actor = agent.actor
        self.halves = Halves(halves)
        self.manager = JointManager(self.halves, halves[0].spaces, halves[0].frames_per_step)
        self.agents = self.manager.spaces.agents
        self.cache = RolloutCache(plan.length)
        self.tracker = TrajTracker(self.manager.num_envs, self.agents)
        self.seconds = dict.fromkeys(ACTIVITIES, 0.0)
        self.collectors = [self._collector(i, plan) for i in range(2)]
        for one in self.collectors:
            one.start_envs(plan.seed, plan.decorrelate)
        seen = tree.map(lambda *x: np.concatenate(x), *(one.observation for one in self.collectors))
        self.cache.adopt(chunk_for(agent, seen, plan.length, len(self.agents)))
        for one, (start, stop) in zip(self.collectors, self.halves.bounds, strict=True):
            one.cache.adopt(tree.index(self.cache.arrays, (slice(None), slice(start, stop))))
            one.start_agent()
        check_rounding(self.actor, self.cache, self.halves.bounds)

    def _collector(self, i: int, plan: Collecting) -> HalfCollector:
        (start, stop), total = self.halves.bounds[i], self.manager.num_envs
        actor = copy(self.actor)  # the same network, but its own random generator
        actor.rows = rows = Rows(start, stop, total)
        tracker, cache = self.tracker.part(start, stop), RolloutCache(plan.length)
        manager, stepper = self.halves.managers[i], self.halves.steppers[i]
        found = HalfCollector(manager, stepper, actor, cache, plan, rows, tracker)
        found.seconds = self.seconds
        return found

    def obtain_samples(self, itr: int) -> tuple[Experience, list[TrajInfo]]:
        """The next chunk `[T, B]`, and the episodes that ended in it."""
        if self.cache.ready():
            self.cache.clear()
        for one in self.collectors:
            one.cache.cursor = self.cache.cursor
            one.actor.carry_on(self.actor.carried())
            one.begin_chunk()
        with cached_autocast():
            finished = self._alternate(self.cache.length - self.cache.cursor)
        self.actor.carry_on(self.collectors[0].actor.carried())
        self.cache.cursor = self.cache.length
        chunk = self.cache.read()
        check_finite(chunk)
        parts = [
            list(zip(one.ends, infos, strict=True))
            for one, infos in zip(self.collectors, finished, strict=True)
        ]
        return chunk, in_order(self.halves.bounds, parts)

    def _alternate(self, steps: int) -> list[list[TrajInfo]]:
        finished: list[list[TrajInfo]] = [[], []]
        for t in range(steps + 1):
            for one, infos in zip(self.collectors, finished, strict=True):
                if t > 0:
                    infos.extend(one.receive())
                if t < steps:
                    one.send()
        return finished

    def close(self) -> None:
        """Close the environments."""
        self.halves.close()


class HalfCollector(Collector):
    """Collects in two halves of a step, between which another can act."""

    actor: Actor
    decision: Decision

    def __init__(
        self,
        manager: EnvironmentManager,
        stepper: SplitStepManager,
        actor: Actor,
        cache: RolloutCache,
        plan: Collecting,
        rows: Rows,
        tracker: TrajTracker,
    ) -> None:
        super().__init__(manager, actor, cache, plan, rows, tracker)
        self.stepper = stepper

    def send(self) -> None:
        """The first half of `step`: act, and have the environments begin."""
        begin = perf_counter()
        self.decision = self.actor.act(self.cache.observation(), self.cache.hidden_state())
        action, _ = self.decision
        self.seconds["acting"] += perf_counter() - begin
        self.stepper.send({name: x.numpy() for name, x in action.items()})

    def receive(self) -> list[TrajInfo]:
        """The second half of `step`: wait for the environments, and store the step."""
        begin = perf_counter()
        step = self.stepper.receive()
        stepped = perf_counter()
        finished = self.store(*self.decision, step)
        self.seconds["stepping"] += stepped - begin
        self.seconds["storing"] += perf_counter() - stepped
        return finished


class Halves:
    """Two managers of equally many environments, and what steps each of them."""

    def __init__(self, managers: Sequence[EnvironmentManager]) -> None:
        self.managers = list(managers)
        counts = [manager.num_envs for manager in managers]
        if len(counts) != 2 or counts[0] != counts[1]:
            raise UsageError(
                f"num_envs = {sum(counts)}: the alternating sampler steps one half while it acts "
                f"for the other; expected an even number"
            )
        self.bounds: Bounds = [(0, counts[0]), (counts[0], sum(counts))]
        self.threads: list[StepThread] = []
        self.steppers = [self._stepper(manager) for manager in managers]

    def _stepper(self, manager: EnvironmentManager) -> SplitStepManager:
        if isinstance(manager, SplitStepManager):
            return manager
        self.threads.append(StepThread(manager))
        return self.threads[-1]

    def count_restarts(self) -> int:
        """Worker processes of both halves replaced so far."""
        return sum(manager.restarts for manager in self.managers)

    def all_exact(self) -> bool:
        """Whether both can be resumed bit for bit."""
        return all(manager.exact for manager in self.managers)

    def save_each(self) -> list[dict[str, Any]]:
        """The state of each."""
        return [manager.state_dict() for manager in self.managers]

    def load_each(self, states: list[dict[str, Any]]) -> None:
        """Put their states back."""
        for manager, state in zip(self.managers, states, strict=True):
            manager.load_state_dict(state)

    def close(self) -> None:
        """Close both, after the steps under way."""
        for thread in self.threads:
            thread.close()
        for manager in self.managers:
            manager.close()


class StepThread:
    """Steps a manager in a thread of its own, while this one acts for the others."""

    def __init__(self, manager: EnvironmentManager) -> None:
        self.manager = manager
        self.pool = ThreadPoolExecutor(1)
        self.coming: Future[EnvStep] | None = None

    def send(self, actions: Arrays) -> None:
        """Begin a step."""
        self.coming = self.pool.submit(self.manager.step, actions)

    def receive(self) -> EnvStep:
        """Wait for its end."""
        assert self.coming is not None, "nothing was sent"
        return self.coming.result()

    def close(self) -> None:
        """End the thread, after the step under way."""
        self.pool.shutdown()
