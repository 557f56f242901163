"""Says once that an environment shows numbers outside of the bounds of its space."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces as gs

from operant.core.spaces import Space

if TYPE_CHECKING:  # these modules import torch, which environment workers do without
    from operant.core.experience import Arrays
    from operant.core.tree import Array

ALL_STEPS = 1_000  # up to here every step is looked at
EVERY = 16  # from then on, only each of so many: two comparisons take 3 µs

_told: set[str] = set()  # environments of this process of which it was said


class BoundsCheck:
    """Looks at observations of an environment; many leave their bounds a little, so it only warns.

    Among environments that are alike, the first speaks for all.
    """

    def __init__(self, env_id: str, spaces: dict[str, Space], index: int = 0) -> None:
        self.env_id = env_id
        known: dict[str, Any] = {name: x for name, x in spaces.items() if _bounded(x)}
        self.boxes = known if index == 0 else {}

    def __call__(self, observation: Arrays, step: int) -> None:
        """Warn if something is out of bounds, and look no more."""
        if not self.boxes or (step > ALL_STEPS and step % EVERY):
            return
        for name, box in self.boxes.items():
            x = observation[name]
            if (x < box.low).any() or (x > box.high).any():
                self.boxes = {}
                tell(self.env_id, f"{_outside(name, x, box)}; widen the space or clip")
                return


def tell(env_id: str, sentence: str) -> None:
    """Warn of an environment once in this process."""
    name = env_id.rpartition(":")[2]  # the module before it is not always known
    if name not in _told:
        _told.add(name)
        warnings.warn(f"{env_id}: {sentence} (said once)", stacklevel=2)


def _outside(name: str, x: Array, box: Any) -> str:
    """The first number of an observation that is out of bounds, and these."""
    low, high = np.broadcast_to(box.low, x.shape), np.broadcast_to(box.high, x.shape)
    at = tuple(int(i) for i in np.argwhere((x < low) | (x > high))[0])
    place = list(at[x.ndim - len(box.shape) :]) or ""
    return (
        f"observation {name!r}{place} = {x[at]:g} is outside of its bounds, "
        f"{low[at]:g} to {high[at]:g}"
    )


def _bounded(space: Space) -> bool:
    """Whether a value of this type could be out of bounds."""
    if not isinstance(space, gs.Box):
        return False
    limits = np.iinfo(space.dtype) if space.dtype.kind in "iu" else None
    low, high = (-np.inf, np.inf) if limits is None else (limits.min, limits.max)
    return bool((space.low > low).any() or (space.high < high).any())
