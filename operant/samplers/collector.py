"""What one process does to collect a batch: act, step, write down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from time import perf_counter
from typing import Any

import numpy as np
import torch

from operant.core import tree
from operant.core.errors import EnvironmentFault, UsageError
from operant.core.experience import EnvStep, Experience, Memo, Tensors, TrajInfo
from operant.core.protocols import Acting, EnvironmentManager, Rows
from operant.core.seeds import derived
from operant.core.tree import Array
from operant.memory.rollout import RolloutCache
from operant.ops.distribution import masks_of
from operant.ops.explore import uniform
from operant.samplers.autocast import weights_rest
from operant.samplers.trajectory import TrajTracker

ACTIVITIES = ("acting", "stepping", "storing")


@dataclass(frozen=True)
class Collecting:
    """How batches are collected."""

    length: int  # steps of every environment in a batch
    seed: int  # of the environments
    reward_clip: float = 0.0  # learn from rewards clipped to this size; 0: as they are
    decorrelate: int = 0  # each environment first takes a random number, below this, of steps
    mid_batch_reset: bool = True  # or an environment whose episode ended rests until the next batch


class Collector:
    """Steps environments with an actor's decisions, and writes them into its part of a chunk.

    `tick`, if there is one, is called before every step and may end the batch early.
    """

    def __init__(
        self,
        manager: EnvironmentManager,
        actor: Acting,
        cache: RolloutCache,
        plan: Collecting,
        rows: Rows | None = None,
        tracker: TrajTracker | None = None,
        tick: Callable[[], bool] | None = None,
    ) -> None:
        self.manager, self.actor, self.cache, self.plan = manager, actor, cache, plan
        self.rows = rows or Rows(0, manager.num_envs, manager.num_envs)
        self.tracker = tracker or TrajTracker(manager.num_envs)
        self.tick = tick
        self.seconds = dict.fromkeys(ACTIVITIES, 0.0)
        self.awake = np.ones(manager.num_envs, bool)
        self.rest: Any = getattr(manager, "rest", None)  # say which environments step
        for name, wanted in (
            ("decorrelate", plan.decorrelate),
            ("mid_batch_reset", not plan.mid_batch_reset),
        ):
            if wanted and self.rest is None:
                raise UsageError(
                    f"{name} = {getattr(plan, name)}: {type(manager).__name__} steps its "
                    f"environments as one; use env.manager = 'simple' or 'subproc'"
                )

    def start_envs(self, seed: int, max_decorrelation_steps: int = 0) -> None:
        """Begin episodes, and take a random number, below the most, of random steps in each."""
        # A batch that is one by itself does not know where in a larger one it stands.
        own = hasattr(self.manager, "first")
        self.observation = self.manager.reset(seed if own else seed + self.rows.start)
        self.tracker.rewards[:] = 0.0
        self.tracker.lengths[:] = 0
        if max_decorrelation_steps > 0:
            self._decorrelate(derived(seed, max_decorrelation_steps), max_decorrelation_steps)

    def _decorrelate(self, seed: int, most: int) -> None:
        # Drawn for the whole batch, of which this is a part: where an environment stands must
        # not depend on how the batch is laid over processes.
        start, stop, total = self.rows
        generator = torch.Generator().manual_seed(seed)
        counts = torch.randint(most, (total,), generator=generator)[start:stop].numpy()
        manager = self.manager
        spaces = manager.spaces
        for taken in range(most):
            masks = masks_of(tree.tensors(self.observation), tuple(spaces.action))
            masks = tree.map(self._among, masks)
            actions = uniform(spaces.action, total, masks, generator, "cpu")
            if taken < counts.max(initial=0) and (self.tick is None or self.tick()):
                self.rest(taken < counts)
                step = manager.step({k: x[start:stop].numpy() for k, x in actions.items()})
                self.tracker.add(step)
                self.observation = step.observation
        self.rest(self.awake)

    def _among(self, mask: torch.Tensor) -> torch.Tensor:
        whole = mask.new_ones((self.rows.total, *mask.shape[1:]))
        whole[self.rows.start : self.rows.stop] = mask
        return whole

    def start_agent(self) -> None:
        """Let the actor begin with what the environments show."""
        self.cache.begin(self.observation)

    def collect_batch(self, itr: int) -> list[TrajInfo]:
        """Fill the cache; the episodes that ended."""
        self.wake()
        finished: list[TrajInfo] = []
        with weights_rest():
            while not self.cache.ready() and (self.tick is None or self.tick()):
                finished += self.step()
        return finished

    def wake(self) -> None:
        """Let every environment step again."""
        if not self.awake.all():
            self.awake[:] = True
            self.rest(self.awake)

    def step(self) -> list[TrajInfo]:
        """One action everywhere; the episodes that it ended."""
        begin = perf_counter()
        action, memo = self.actor.act(self.cache.observation(), self.cache.hidden_state())
        acted = perf_counter()
        step = self.manager.step({name: x.numpy() for name, x in action.items()})
        stepped = perf_counter()
        finished = self.write(action, memo, step)
        seconds = self.seconds
        seconds["acting"] += acted - begin
        seconds["stepping"] += stepped - acted
        seconds["storing"] += perf_counter() - stepped
        return finished

    def write(self, action: Tensors, memo: Memo, step: EnvStep) -> list[TrajInfo]:
        """Write a step down; the episodes that it ended."""
        self.cache.agent_write(action, memo)
        limit = self.plan.reward_clip
        self.cache.env_write(step, step.reward.clip(-limit, limit) if limit else None)
        if not self.plan.mid_batch_reset:
            self._lay_to_rest(step.terminated | step.truncated)
        return self.tracker.add(step)

    def _lay_to_rest(self, ended: Array) -> None:
        if ended.any():
            self.awake &= ~ended
            self.rest(self.awake)


BaseCollector = Collector  # rlpyt's name


def check_finite(chunk: Experience) -> None:
    """Refuse a chunk with a NaN or infinity in it, naming where it is."""
    shown = {"observation": chunk.observation, "reward": chunk.reward}
    for name, x in tree.leaves(shown):
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
    chunk: Experience, bounds: Sequence[tuple[int, int]], told: Sequence[list[TrajInfo]]
) -> list[TrajInfo]:
    """Episodes that parts of a batch told of, in the order in which they ended."""
    ended = (chunk.ended & chunk.valid).numpy()
    found = []
    for (start, stop), infos in zip(bounds, told, strict=True):
        t, b = np.nonzero(ended[:, start:stop])
        found += list(zip(t.tolist(), (b + start).tolist(), infos, strict=True))
    return [info for _, _, info in sorted(found, key=lambda one: one[:2])]
