"""Two halves of the environments: one steps while the other's actions are computed."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from operant.core import tree
from operant.core.errors import UsageError
from operant.core.experience import Arrays, Decision, EnvStep, Experience, Metrics, TrajInfo
from operant.core.protocols import Actor, Agent, EnvironmentManager, Rows
from operant.core.state import restore, state_of
from operant.memory.rollout import RolloutCache
from operant.samplers.autocast import weights_rest
from operant.samplers.collector import ACTIVITIES, Collecting, Collector, check_finite, in_order
from operant.samplers.evaluate import Evaluated, Evaluation
from operant.samplers.joint_manager import Bounds, JointManager
from operant.samplers.rounding import check_rounding
from operant.samplers.serial import chunk_for
from operant.samplers.trajectory import TrajTracker


class AlternatingSampler(Evaluated):
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
        self.parts = Halves(halves)
        total = self.parts.bounds[-1][1]
        self.manager = JointManager(self.parts, halves[0].spaces, halves[0].frames_per_step)
        self.cache, self.tracker = RolloutCache(plan.length), TrajTracker(total)
        self.seconds = dict.fromkeys(ACTIVITIES, 0.0)
        self.metrics: Metrics = {}
        self.collectors = [self._collector(i, plan) for i in range(2)]
        for one in self.collectors:
            one.start_envs(plan.seed, plan.decorrelate)
        seen = tree.map(lambda *x: np.concatenate(x), *(one.observation for one in self.collectors))
        self.cache.adopt(chunk_for(agent, seen, plan.length))
        for one, (start, stop) in zip(self.collectors, self.parts.bounds, strict=True):
            one.cache.adopt(tree.index(self.cache.arrays, (slice(None), slice(start, stop))))
            one.start_agent()
        check_rounding(self.actor, self.cache, self.parts.bounds)

    def _collector(self, i: int, plan: Collecting) -> HalfCollector:
        (start, stop), total = self.parts.bounds[i], self.parts.bounds[-1][1]
        actor = copy(self.actor)  # the same network, other random numbers
        actor.rows = rows = Rows(start, stop, total)
        sums = self.tracker.rewards[start:stop], self.tracker.lengths[start:stop]
        tracker, cache = TrajTracker(stop - start, *sums), RolloutCache(plan.length)
        found = HalfCollector(self.parts.steppers[i], actor, cache, plan, rows, tracker)
        found.seconds = self.seconds
        return found

    def obtain_samples(self, itr: int) -> tuple[Experience, list[TrajInfo]]:
        """The next chunk `[T, B]`, and the episodes that ended in it."""
        if self.cache.ready():
            self.cache.clear()
        for one in self.collectors:
            one.cache.cursor = self.cache.cursor
            one.actor.load_state_dict(self.actor.state_dict())
            one.wake()
        with weights_rest():
            told = self._alternate(self.cache.length - self.cache.cursor)
        self.actor.load_state_dict(self.collectors[0].actor.state_dict())
        self.cache.cursor = self.cache.length
        chunk = self.cache.read()
        check_finite(chunk)
        return chunk, in_order(chunk, self.parts.bounds, told)

    def _alternate(self, steps: int) -> list[list[TrajInfo]]:
        told: list[list[TrajInfo]] = [[], []]
        for t in range(steps + 1):
            for one, infos in zip(self.collectors, told, strict=True):
                if t > 0:
                    infos.extend(one.receive())
                if t < steps:
                    one.send()
        return told

    def close(self) -> None:
        """Close the environments."""
        self.parts.close()

    def state_dict(self) -> dict[str, Any]:
        """The environments, the episodes under way and what to act on next."""
        return state_of(self, "manager", "cache", "tracker")

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave; episodes that cannot be continued start anew."""
        restore(self, state, "manager", "cache", "tracker")


class SplitManager(EnvironmentManager, Protocol):
    """Environments whose step has a beginning and an end."""

    def send(self, actions: Arrays) -> None: ...
    def receive(self) -> EnvStep: ...


class HalfCollector(Collector):
    """Collects in halves of a step, between which another can act."""

    manager: SplitManager
    actor: Actor
    decided: Decision

    def send(self) -> None:
        """The first half of `step`: decide, and have the environments begin."""
        begin = perf_counter()
        self.decided = self.actor.act(self.cache.observation(), self.cache.hidden_state())
        action, _ = self.decided
        self.seconds["acting"] += perf_counter() - begin
        self.manager.send({name: x.numpy() for name, x in action.items()})

    def receive(self) -> list[TrajInfo]:
        """The second half of `step`: wait for the environments, and write down what came of it."""
        begin = perf_counter()
        step = self.manager.receive()
        stepped = perf_counter()
        finished = self.write(*self.decided, step)
        self.seconds["stepping"] += stepped - begin
        self.seconds["storing"] += perf_counter() - stepped
        return finished


class Halves:
    """Two managers of equally many environments."""

    def __init__(self, managers: Sequence[EnvironmentManager]) -> None:
        self.managers = list(managers)
        counts = [manager.num_envs for manager in managers]
        if len(counts) != 2 or counts[0] != counts[1]:
            raise UsageError(
                f"num_envs = {sum(counts)}: the alternating sampler steps one half while it acts "
                f"for the other; expected an even number"
            )
        self.bounds: Bounds = [(0, counts[0]), (counts[0], sum(counts))]
        self.steppers: list[Any] = [
            manager if hasattr(manager, "send") else Threaded(manager) for manager in managers
        ]

    def exact(self) -> bool:
        """Whether both can be taken up again bit for bit."""
        return all(manager.exact for manager in self.managers)

    def capture(self) -> list[dict[str, Any]]:
        """The state of each."""
        return [manager.state_dict() for manager in self.managers]

    def restore(self, states: list[dict[str, Any]]) -> None:
        """Put their states back."""
        for manager, state in zip(self.managers, states, strict=True):
            manager.load_state_dict(state)

    def close(self) -> None:
        """Close both."""
        for one in self.steppers:
            one.close()


class Threaded:
    """Steps a manager in a thread of its own, while this one acts for the others."""

    def __init__(self, manager: EnvironmentManager) -> None:
        self.manager = manager
        self.pool = ThreadPoolExecutor(1)
        self.coming: Future[EnvStep] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.manager, name)

    def send(self, actions: Arrays) -> None:
        """Begin a step."""
        self.coming = self.pool.submit(self.manager.step, actions)

    def receive(self) -> EnvStep:
        """Wait for its end."""
        assert self.coming is not None, "nothing was sent"
        return self.coming.result()

    def close(self) -> None:
        """Close the manager when its step is over."""
        self.pool.shutdown()
        self.manager.close()
