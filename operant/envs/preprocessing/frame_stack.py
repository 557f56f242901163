"""Frame stacking: the last observations as one, for any environment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium import spaces as gs
from gymnasium.wrappers import FrameStackObservation

from operant.core.spaces import Space, is_mask
from operant.envs.nested_spaces import named
from operant.envs.preprocessing.observation import Operation, channels_last

if TYPE_CHECKING:  # this module imports torch, which environment workers do without
    from operant.core.tree import Array

VECTORS, IMAGES = 2, 4  # ranks of stacks of vectors, and of images with channels


def stacked(env: gymnasium.Env[Any, Any], count: int) -> gymnasium.Env[Any, Any]:
    """An environment whose observations are the last `count`; zeros come before the first one."""
    return FrameStackObservation(env, count, padding_type="zero") if count > 1 else env


def merging(env: gymnasium.Env[Any, Any], count: int) -> list[Operation]:
    """The operations that make a vector of stacked vectors, and an image of stacked images."""
    if count <= 1:
        return []
    spaces = named(env.observation_space, "observation")
    boxes = {name: x for name, x in spaces.items() if isinstance(x, gs.Box)}
    found: list[Operation] = [LastFrame(name) for name in boxes if is_mask(name)]
    for name, space in boxes.items():
        if len(space.shape) in (VECTORS, IMAGES) and not is_mask(name):
            last = len(space.shape) == IMAGES and channels_last(space.shape[1:])
            found.append(MergeFrames(name, len(space.shape), last))
    return found


@dataclass(frozen=True)
class MergeFrames:
    """Stacked vectors `[n, k]` as `[n * k]`, images `[n, H, W, C]` as `[n * C, H, W]`."""

    field: str
    rank: int
    channels_last: bool

    def space(self, space: Space) -> Space:
        assert isinstance(space, gs.Box)
        return gs.Box(self(space.low), self(space.high), dtype=np.dtype(space.dtype).type)

    def __call__(self, x: Array) -> Array:
        x = np.moveaxis(x, -1, -3) if self.channels_last else x
        lead = x.shape[: x.ndim - self.rank]
        frames, first, *rest = x.shape[x.ndim - self.rank :]
        return x.reshape(*lead, frames * first, *rest)


@dataclass(frozen=True)
class LastFrame:
    """The newest of stacked action masks: only that one says what is allowed now."""

    field: str

    def space(self, space: Space) -> Space:
        assert isinstance(space, gs.Box)
        return gs.Box(space.low[-1], space.high[-1], dtype=np.dtype(space.dtype).type)

    def __call__(self, x: Array) -> Array:
        return x[..., -1, :]
