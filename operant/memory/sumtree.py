"""A sum tree: samples by weight, and changes weights, in logarithmic time."""

from __future__ import annotations

from typing import Any

import numpy as np

from operant.core.tree import Array
from operant.memory.jit import jit

BITS = 3
WIDTH = 1 << BITS  # numbers below each sum: as many as lie side by side in a processor's cache
TOP = 2048  # sums that are passed in one sweep, by draws that come in order


class SumTree:
    """Weights of `size` places; each level above holds the sums of `WIDTH` numbers below it.

    A sum is always made anew, in one order, from what is below it: nothing drifts, a place given
    twice does no harm, and the sums follow from the weights. A place of weight zero is never
    drawn, whatever the rounding.
    """

    def __init__(self, size: int) -> None:
        counts = [WIDTH * -(-size // WIDTH)]
        while counts[-1] > TOP or len(counts) == 1:
            counts.append(WIDTH * -(-counts[-1] // WIDTH**2))
        # From the top down to the weights; every sum has all its numbers.
        self.levels = tuple(np.zeros(count) for count in reversed(counts))

    @property
    def weights(self) -> Array:
        """The weight of each place; change them by `set` only."""
        return self.levels[-1]

    def set(self, places: Array, weights: Array) -> None:
        """Give `places` these weights, none negative."""
        if places.shape != weights.shape:  # machine code would read past the end
            raise ValueError(f"{places.shape} places, but {weights.shape} weights")
        _set(self.levels, places, np.asarray(weights, np.float64))

    def draw(self, uniform: Array) -> tuple[Array, Array]:
        """Places drawn in proportion to their weights, from `len(uniform)` strata; their weights.

        `uniform` are independent draws from [0, 1). Some weight must not be zero.
        """
        places, weights = np.zeros(len(uniform), np.int64), np.empty(len(uniform))
        _draw(self.levels, uniform, places, weights)
        return places, weights

    def state_dict(self) -> dict[str, Any]:
        """The weights."""
        return {"weights": self.weights}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave."""
        self.set(np.arange(len(self.weights)), state["weights"])


def tree_bytes(size: int) -> int:
    """Bytes of a tree of `size` places, about."""
    return 8 * size * WIDTH // (WIDTH - 1)


@jit
def _set(levels: tuple[Array, ...], places: Array, weights: Array) -> None:
    levels[-1][places] = weights
    parents = places >> BITS
    for d in range(len(levels) - 1, 0, -1):
        level, above = levels[d], levels[d - 1]
        for i in range(len(parents)):
            first = parents[i] << BITS
            total = 0.0
            for child in range(first, first + WIDTH):
                total += level[child]
            above[parents[i]] = total
            parents[i] >>= BITS


@jit
def _draw(levels: tuple[Array, ...], uniform: Array, places: Array, weights: Array) -> None:
    count, rest, top = len(uniform), np.empty(len(uniform)), levels[0]
    total, last = top.sum(), len(top) - 1
    while last > 0 and top[last] == 0.0:  # nothing is drawn from there
        last -= 1
    child, before = 0, 0.0  # where the sweep is, and the sum of what it has passed
    for i in range(count):
        target = (uniform[i] + i) * (total / count)
        while child < last and before + top[child] <= target:
            before += top[child]
            child += 1
        places[i], weights[i], rest[i] = child, top[child], target - before
    for level in levels[1:]:
        for i in range(count):  # for what is far in memory, all draws wait at once
            first = places[i] << BITS
            weights[i] = level[first] + level[first + WIDTH - 1]
        for i in range(count):
            first = places[i] << BITS
            chosen, left = first, rest[i]
            for child in range(first, first + WIDTH):
                weight = level[child]
                if weight > 0.0:
                    chosen = child
                    if left < weight:
                        break
                    left -= weight  # beyond the last one, by rounding: stay with it
            places[i], weights[i], rest[i] = chosen, level[chosen], left
