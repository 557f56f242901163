"""What one process does to collect a chunk: act, step, store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from time import perf_counter

import numpy as np
import torch

from operant.core import tree
from operant.core.errors import EnvironmentFault, UsageError
from operant.core.experience import Arrays, EnvStep, Experience, Memo, Tensors, TrajInfo
from operant.core.protocols import Acting, EnvironmentManager, PausableManager, PlacedManager, Rows
from operant.core.seeds import derived
from operant.core.tree import Array
from operant.memory.rollout import RolloutCache
from operant.ops.distribution import masks_of
from operant.ops.explore import uniform
from operant.samplers.autocast import cached_autocast
from operant.samplers.trajectory import TrajTracker

ACTIVITIES = ("acting", "stepping", "storing")
Ended = tuple[tuple[int, int], TrajInfo]  # step of the chunk and environment, and the episode


@dataclass(frozen=True)
class Collecting:
    """How chunks are collected."""

    length: int  # steps of every environment in a chunk
    seed: int  # of the environments
    reward_clip: float = 0.0  # clip rewards for learning to [-x, x]; 0: no clipping
    decorrelate: int = 0  # each environment first takes fewer than so many random steps
    mid_batch_reset: bool = True  # False: after an episode, wait for the next chunk


class Collector:
    """Steps environments with an actor's actions, and stores the steps in its part of a chunk.

    `keep_going`, if there is one, is called before every step; if it returns false, the chunk is
    left unfinished.
    """

    def __init__(
        self,
        manager: EnvironmentManager,
        actor: Acting,
        cache: RolloutCache,
        plan: Collecting,
        rows: Rows | None = None,
        tracker: TrajTracker | None = None,
        keep_going: Callable[[], bool] | None = None,
    ) -> None:
        self.manager, self.actor, self.cache, self.plan = manager, actor, cache, plan
        self.rows = rows or Rows(0, manager.num_envs, manager.num_envs)
        self.tracker = tracker or TrajTracker(manager.num_envs, manager.spaces.agents)
        self.keep_going = keep_going
        self.seconds = dict.fromkeys(ACTIVITIES, 0.0)
        self.active = np.ones(manager.num_envs, bool)
        self.ends: list[tuple[int, int]] = []  # where in the chunk each finished episode ended
        self._check_pausable(plan)

    def _check_pausable(self, plan: Collecting) -> None:
        for name, value, pauses in (
            ("decorrelate", plan.decorrelate, plan.decorrelate > 0),
            ("mid_batch_reset", plan.mid_batch_reset, not plan.mid_batch_reset),
        ):
            if pauses and not isinstance(self.manager, PausableManager):
                raise UsageError(
                    f"{name} = {value}: {type(self.manager).__name__} steps all of its "
                    f"environments; use env.manager = 'simple' or 'subproc'"
                )

    def start_envs(self, seed: int, max_decorrelation_steps: int = 0) -> None:
        """Begin episodes, and take a random number, below the maximum, of random steps in each."""
        # A vector environment does not know its place in a larger batch.
        placed = isinstance(self.manager, PlacedManager)
        self.observation = self.manager.reset(seed if placed else seed + self.rows.start)
        self.tracker.clear()
        if max_decorrelation_steps > 0:
            self._decorrelate(derived(seed, max_decorrelation_steps), max_decorrelation_steps)

    def _decorrelate(self, seed: int, most: int) -> None:
        # Drawn for the whole batch, of which this is a part: the start of an environment must
        # not depend on how the batch is distributed over processes.
        start, stop, total = self.rows
        generator = torch.Generator().manual_seed(seed)
        counts = torch.randint(most, (total,), generator=generator)[start:stop].numpy()
        spaces = self.manager.spaces
        for taken in range(most):
            masks = masks_of(tree.tensors(self.observation), tuple(spaces.action))
            masks = tree.map(self._in_whole_batch, masks)
            actions = uniform(spaces.action, total, masks, generator, "cpu")
            if taken < counts.max(initial=0) and (self.keep_going is None or self.keep_going()):
                self._set_active(taken < counts)
                step = self.manager.step({k: x[start:stop].numpy() for k, x in actions.items()})
                self.tracker.add(step)
                self.observation = step.observation
        self._set_active(self.active)

    def _in_whole_batch(self, mask: torch.Tensor) -> torch.Tensor:
        """A mask of some rows in its place among all rows; the others allow every action."""
        whole = mask.new_ones((self.rows.total, *mask.shape[1:]))
        whole[self.rows.start : self.rows.stop] = mask
        return whole

    def _set_active(self, active: Array) -> None:
        assert isinstance(self.manager, PausableManager), "checked when this was made"
        self.manager.set_active(active)

    def start_agent(self) -> None:
        """Put the first observations into the chunk, for the actor to begin with."""
        self.cache.begin(self.observation)

    def collect_batch(self, itr: int) -> list[TrajInfo]:
        """Fill the chunk; returns the episodes that ended."""
        self.begin_chunk()
        finished: list[TrajInfo] = []
        with cached_autocast():
            while not self.cache.ready() and (self.keep_going is None or self.keep_going()):
                finished += self.step()
        return finished

    def begin_chunk(self) -> None:
        """Let every environment step again; no episode has ended yet."""
        self.ends = []
        if not self.active.all():
            self.active[:] = True
            self._set_active(self.active)

    def step(self) -> list[TrajInfo]:
        """One action in every environment; returns the episodes that it ended."""
        begin = perf_counter()
        action, memo = self.actor.act(self.cache.observation(), self.cache.hidden_state())
        acted = perf_counter()
        step = self.manager.step({name: x.numpy() for name, x in action.items()})
        stepped = perf_counter()
        finished = self.store(action, memo, step)
        seconds = self.seconds
        seconds["acting"] += acted - begin
        seconds["stepping"] += stepped - acted
        seconds["storing"] += perf_counter() - stepped
        return finished

    def store(self, action: Tensors, memo: Memo, step: EnvStep) -> list[TrajInfo]:
        """Store a step in the chunk; returns the episodes that it ended."""
        self.cache.agent_write(action, memo)
        limit = self.plan.reward_clip
        if limit and step.agents is not None:
            self.cache.env_write(clip_each(step, step.agents, limit))
        else:
            self.cache.env_write(step, step.reward.clip(-limit, limit) if limit else None)
        if not self.plan.mid_batch_reset:
            self._pause(step.terminated | step.truncated)
        finished, t = self.tracker.add(step), self.cache.cursor - 1
        self.ends += [(t, b) for b in self.tracker.ended]
        return finished

    def _pause(self, ended: Array) -> None:
        if ended.any():
            self.active &= ~ended
            self._set_active(self.active)


BaseCollector = Collector  # rlpyt's name


def clip_each(step: EnvStep, agents: Arrays, limit: float) -> EnvStep:
    """The step with every agent's reward within [-limit, limit], and their sum."""
    each = agents["reward"].clip(-limit, limit)
    return step._replace(reward=each.sum(-1), agents=agents | {"reward": each})


def check_finite(chunk: Experience) -> None:
    """Raise an error if a chunk contains NaN or infinity, naming where it is."""
    checked = {"observation": chunk.observation, "reward": chunk.reward}
    for name, x in tree.leaves(checked):
        # One sum decides in the good case; an infinity or NaN anywhere survives it.
        if x.is_floating_point() and not isfinite(x.numpy().sum(dtype=np.float64)):
            bad = (~x.isfinite()).nonzero()
            if len(bad):
                t, b, *place = bad[0].tolist()
                raise EnvironmentFault(
                    f"environment {b}, step {t} of the chunk: {name}{place or ''} is "
                    f"{x[tuple(bad[0])].item()}; expected a finite number"
                )


def in_order(
    bounds: Sequence[tuple[int, int]], finished: Sequence[Sequence[Ended]]
) -> list[TrajInfo]:
    """Episodes that ended in parts of a batch, in the order in which they ended."""
    found = [
        ((t, start + b), info)
        for (start, _), part in zip(bounds, finished, strict=True)
        for (t, b), info in part
    ]
    return [info for _, info in sorted(found, key=lambda one: one[0])]
