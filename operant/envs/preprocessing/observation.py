"""What agents see: small operations on the spaces of observations and on their arrays.

Arrays may have any leading dimensions, so one operation serves one environment and a batch of them.
Agents get float32 or uint8 observations, channel-first images, and bool action masks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import numpy as np
from gymnasium import spaces as gs

from operant.core.errors import UsageError
from operant.core.spaces import Shape, Space, choices, is_mask

if TYPE_CHECKING:  # these modules import torch, which environment workers do without
    from operant.core.experience import Arrays
    from operant.core.tree import Array


class Operation(Protocol):
    """Changes the observation called `field`: its space once, its arrays at every step."""

    @property
    def field(self) -> str: ...
    def space(self, space: Space) -> Space: ...
    def __call__(self, x: Array) -> Array: ...


@dataclass(frozen=True)
class Cast:
    """Numbers of any kind as `dtype`."""

    field: str
    dtype: str = "float32"

    def space(self, space: Space) -> Space:
        if isinstance(space, gs.Box) and self.dtype == "float32":
            low, high = space.low.astype(np.float32), space.high.astype(np.float32)
            return gs.Box(low, high, dtype=np.float32)
        return gs.Box(0, 1, _shape(space), dtype=np.dtype(self.dtype).type)

    def __call__(self, x: Array) -> Array:
        return x.astype(self.dtype, copy=False)


@dataclass(frozen=True)
class OneHot:
    """Integers as one-hot vectors, concatenated."""

    field: str
    sizes: tuple[int, ...]  # number of values of each integer
    starts: tuple[int, ...]  # the smallest value of each integer
    rank: int  # of the array of integers

    def space(self, space: Space) -> Space:
        return gs.Box(0, 1, (sum(self.sizes),), dtype=np.float32)

    def __call__(self, x: Array) -> Array:
        lead = x.shape[: x.ndim - self.rank]
        offsets = np.cumsum([0, *self.sizes[:-1]]) - np.asarray(self.starts)
        at = x.reshape(*lead, len(self.sizes)).astype(np.int64) + offsets
        hot = np.zeros((*lead, sum(self.sizes)), np.float32)
        np.put_along_axis(hot, at, 1.0, axis=-1)
        return hot


@dataclass(frozen=True)
class ChannelFirst:
    """Images `[H, W, C]` as `[C, H, W]`."""

    field: str

    def space(self, space: Space) -> Space:
        assert isinstance(space, gs.Box)
        return gs.Box(self(space.low), self(space.high), dtype=np.dtype(space.dtype).type)

    def __call__(self, x: Array) -> Array:
        return np.moveaxis(x, -1, -3)


@dataclass(frozen=True)
class Hide:
    """A vector, or every vector of a stack of them, without the entries at `indices`."""

    field: str
    indices: tuple[int, ...]
    stacked: bool = False

    def space(self, space: Space) -> Space:
        if not isinstance(space, gs.Box) or len(space.shape) != 1 + self.stacked:
            raise UsageError(
                f"hide = {self.indices}: the observation is {space}; "
                f"expected a plain vector, a Box of rank 1; leave `hide` empty"
            )
        size = space.shape[-1]
        beyond = [i for i in self.indices if not 0 <= i < size]
        if beyond or len(set(self.indices)) >= size:
            raise UsageError(
                f"hide = {self.indices}: expected indices from 0 to {size - 1}, not all"
            )
        return gs.Box(self(space.low), self(space.high), dtype=np.dtype(space.dtype).type)

    def __call__(self, x: Array) -> Array:
        return x[..., _kept(self.indices, x.shape[-1])]


@lru_cache
def _kept(hidden: tuple[int, ...], size: int) -> list[int]:
    return [i for i in range(size) if i not in hidden]


class ObsPreprocessor:
    """Operations in order, each on the observation it names."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        self.operations = tuple(operations)

    def space(self, spaces: dict[str, Space]) -> dict[str, Space]:
        """The spaces of the results."""
        spaces = dict(spaces)
        for operation in self.operations:
            if operation.field not in spaces:
                known = ", ".join(spaces)
                raise UsageError(
                    f"operation {operation}: no observation {operation.field!r}; "
                    f"expected one of {known}"
                )
            spaces[operation.field] = operation.space(spaces[operation.field])
        return spaces

    def __call__(self, observation: Arrays) -> Arrays:
        for operation in self.operations:
            observation[operation.field] = operation(observation[operation.field])
        return observation


def standard(spaces: dict[str, Space], stacked: Sequence[str] = ()) -> list[Operation]:
    """The operations that turn observations of these spaces into what agents get.

    The first axis of `stacked` observations counts frames, which are their channels.
    """
    return [
        operation
        for name, space in spaces.items()
        for operation in _standard(name, space, name in stacked)
    ]


def _standard(name: str, space: Space, stacked: bool) -> list[Operation]:
    if is_mask(name):
        return [Cast(name, "bool")]
    if isinstance(space, gs.Discrete):
        return [OneHot(name, (int(space.n),), (int(space.start),), 0)]
    if isinstance(space, gs.MultiDiscrete):
        starts = tuple(int(i) for i in np.ravel(space.start))
        return [OneHot(name, tuple(choices(space)), starts, len(_shape(space)))]
    # A bool image becomes float32, not uint8: networks divide uint8 by 255.
    found: list[Operation] = []
    if space.dtype not in (np.float32, np.uint8):
        found.append(Cast(name))
    if channels_last(_shape(space)) and not stacked:
        found.append(ChannelFirst(name))
    return found


def channels_last(shape: Shape) -> bool:
    """Whether an observation is an image `[H, W, C]`: Gymnasium's layout, if both are possible."""
    if len(shape) != 3:
        return False
    first, middle, last = shape
    if last < min(first, middle) or first < min(middle, last):  # fewer channels than pixels a side
        return last < first
    # More channels than that: the two axes of equal length are height and width.
    return first == middle or middle != last


def _shape(space: Space) -> Shape:
    assert space.shape is not None  # `named` gives only spaces with one
    return tuple(space.shape)
