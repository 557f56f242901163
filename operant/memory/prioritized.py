"""Prioritized experience replay (arXiv:1511.05952).

Steps with a large TD error are sampled more often, and weigh less by importance sampling.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np
import torch
from torch import Tensor

from operant.core.errors import TrainingFault, UsageError
from operant.core.experience import Experience
from operant.core.schedule import Schedule
from operant.core.state import restore, state_of
from operant.core.tree import Array
from operant.memory.jit import jit
from operant.memory.replay import ExperienceReplay, no_start
from operant.memory.ring import Ring
from operant.memory.sumtree import SumTree

MIN_ERROR = 1e-6  # added to every TD error, so that everything can be sampled again


class PrioritizedReplay(ExperienceReplay):
    """Draws windows by the priority of their first step, `(error + MIN_ERROR) ** alpha`.

    A new step has the highest priority so far. Only starts of whole windows have a weight in the
    tree, so nothing else can be sampled. `beta` is a schedule over the steps stored.
    """

    def __init__(
        self, size: int, min_size: int, seed: int, alpha: float, beta: Schedule, **options: Any
    ) -> None:
        super().__init__(size, min_size, seed, **options)
        self.alpha, self.beta = alpha, beta
        self.max_priority = 1.0  # so far
        self.length = 1  # of the windows whose starts are in the tree
        self.tree = SumTree(0)
        self._drawn: Array | None = None  # places of the last sample, if nothing was stored since

    def store(self, chunk: Experience) -> None:
        """Append a chunk with one vectorised write, and its priorities with another."""
        written, held = (x if len(x) else 0 for x in (self.written, self.count))
        super().store(chunk)
        self._drawn = None
        advance = self.written - written
        self._reset_priorities(np.zeros_like(advance), self.length + advance)
        last = np.minimum(held + advance, self.capacity - 1)
        if (last > self.count).any():  # not overwritten, and yet gone: their frames are
            rows, columns, _ = self._behind(self.count + 1, last + 1)
            self.tree.set(rows * len(self.count) + columns, np.zeros(len(rows)))

    def _allocate(self, example: dict[str, Any], envs: int) -> Ring:
        ring = super()._allocate(example, envs)
        self.tree = SumTree(self.capacity * envs)
        return ring

    def _behind(self, low: Array, high: Array) -> tuple[Array, Array, Array]:
        """The rows from `low` to before `high` steps behind the cursor, by environment:
        rows, environments and steps."""
        ages = np.arange(low.min(), min(self.capacity, high.max()))[:, None]
        at, columns = ((ages >= low) & (ages < high)).nonzero()
        behind = at + low.min()
        return (self.cursor[columns] - behind) % self.capacity, columns, behind

    def _reset_priorities(self, low: Array, high: Array) -> None:
        """Give these rows the highest priority if whole windows begin there, else none."""
        rows, columns, behind = self._behind(low, high)
        starts = (behind >= self.length) & (behind <= self.count[columns])
        starts &= self.fields["valid"][rows, columns]
        self.tree.set(rows * len(self.count) + columns, self.max_priority * starts)

    def _draw(self, batch_size: int, length: int) -> tuple[Array, Tensor | None]:
        if length != self.length:
            both = sorted((length, self.length))
            self.length = length
            low, high = (np.full_like(self.count, x) for x in both)
            self._reset_priorities(low, high)
        places, priority = self.tree.draw(self.random.random(batch_size))
        if not priority[0]:  # nor has any other
            raise no_start(length, self.size)
        weight = _importance(priority, self.beta(self.stored))
        self._drawn = places
        return places, torch.from_numpy(weight)

    def prioritize(self, place: Array | Tensor, error: Tensor) -> None:
        """Set the priorities of what was sampled from `place` by its TD error `[batch]`."""
        places = np.asarray(place)
        if places.shape != error.shape:
            raise UsageError(
                f"place has shape {places.shape}, error {tuple(error.shape)}; expected one each"
            )
        priority, highest, total = _priority(error.detach().cpu().numpy(), self.alpha)
        if not isfinite(total):
            raise TrainingFault(f"the error of a sample is {total}; a smaller lr helps")
        if places is not self._drawn:
            self._check(places)
            held = self.tree.weights.take(places) > 0  # else overwritten since they were drawn
            places, priority = places[held], priority[held]
        self.tree.set(places, priority)
        self.max_priority = max(self.max_priority, highest)

    def _check(self, places: Array) -> None:
        end = len(self.tree.weights)
        strange = places[(places < 0) | (places >= end)]
        if len(strange):
            raise UsageError(f"place = {strange[0]}: expected what was drawn, from 0 to {end - 1}")

    def state_dict(self) -> dict[str, Any]:
        """Everything held, and all priorities."""
        return super().state_dict() | state_of(self, "max_priority", "length", "tree")

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave."""
        super().load_state_dict(state)
        restore(self, state, "max_priority", "length", "tree")


@jit
def _importance(priority: Array, beta: float) -> Array:
    """(N P)^-beta over its maximum, in which N and the sum of priorities cancel."""
    lowest, power = priority.min(), np.float32(beta)  # in float32 it takes half as long
    weight = np.empty(len(priority), np.float32)
    for i in range(len(priority)):
        weight[i] = np.float32(lowest / priority[i]) ** power
    return weight


@jit
def _priority(error: Array, alpha: float) -> tuple[Array, float, float]:
    """Priorities, their maximum and their sum, which a NaN or infinity anywhere survives."""
    priority, power, highest, total = np.empty(len(error)), np.float32(alpha), 0.0, 0.0
    for i in range(len(error)):
        priority[i] = (np.float32(abs(error[i])) + np.float32(MIN_ERROR)) ** power
        highest = max(highest, priority[i])
        total += priority[i]
    return priority, highest, total
