"""Draws from many weighted places, and changes their weights, at the cost of a logarithm."""

from __future__ import annotations

from typing import Any

import numpy as np

from operant.core.tree import Array

BITS = 5
WIDTH = 1 << BITS  # numbers below each sum: two gathers of thirty-two reach a million
TOP = 1024  # sums that are searched at once
ONES = np.ones(WIDTH, np.float32)
AFTER = np.tril(np.ones((WIDTH, WIDTH), np.float32), -1)  # `x @ AFTER`: sums of what comes after


class SumTree:
    """Weights of `size` places; each level above holds the sums of `WIDTH` numbers below it.

    A sum is always made anew from what is below it, so nothing drifts and a place given twice
    does no harm. A place of weight zero is never drawn, whatever the rounding.
    """

    def __init__(self, size: int) -> None:
        top, depth = -(-size // WIDTH), 1
        while top > TOP:
            top, depth = -(-top // WIDTH), depth + 1
        # From the weights themselves up to the top; every sum has all its numbers.
        self.levels = [np.zeros(top * WIDTH**d, np.float32) for d in range(depth, 0, -1)]
        self.levels.append(np.zeros(top))  # a million small numbers add up only in float64
        self._families = [level.reshape(-1, WIDTH) for level in self.levels[:-1]]
        self._before = np.zeros(top + 1)  # sums of the top up to each of its numbers

    @property
    def weights(self) -> Array:
        """The weight of each place; change them by `set` only."""
        return self.levels[0]

    def set(self, places: Array, weights: Array | float) -> None:
        """Give `places` these weights, none negative."""
        self.levels[0][places] = weights
        for family, above in zip(self._families, self.levels[1:], strict=True):
            places = places >> BITS
            above[places] = family.take(places, axis=0) @ ONES

    def draw(self, uniform: Array) -> tuple[Array, Array]:
        """Places drawn in proportion to their weights, from `len(uniform)` strata; their weights.

        `uniform` are independent draws from [0, 1). Some weight must not be zero.
        """
        count = len(uniform)
        before = self._before
        self.levels[-1].cumsum(out=before[1:])
        rest = (uniform + np.arange(count)) * (before[-1] / count)
        found = before[1:-1].searchsorted(rest, "right")
        rest = (rest - before.take(found)).astype(np.float32)
        begins = np.arange(0, WIDTH * count, WIDTH)
        for family in reversed(self._families):
            # Laid end to end from the last child to the first, `rest` falls in this one.
            after = family.take(found, axis=0) @ AFTER
            child = (after <= rest[:, None]).argmax(axis=1)
            rest -= after.take(begins + child)
            found = (found << BITS) + child
        weights = self.weights.take(found)
        if not weights.all():  # by rounding
            found[weights == 0] = self._heaviest()
            weights = self.weights.take(found)
        return found, weights

    def _heaviest(self) -> int:
        """A place of weight: in the heaviest child of the heaviest child of the top."""
        found = int(self.levels[-1].argmax())
        for family in reversed(self._families):
            found = found * WIDTH + int(family[found].argmax())
        return found

    def state_dict(self) -> dict[str, Any]:
        """All levels: sums made in another order might differ in their last bit."""
        return {"levels": self.levels}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave."""
        for level, saved in zip(self.levels, state["levels"], strict=True):
            level[:] = saved


def tree_bytes(size: int) -> int:
    """Bytes of a tree of `size` places, about."""
    return 4 * size * WIDTH // (WIDTH - 1)
