"""Actions: from what agents choose to what the environment takes.

For agents, discrete actions count from zero and bounded Box actions span [-1, 1].
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces as gs

from operant.core.errors import TrainingFault, UsageError
from operant.core.spaces import Shape, Space
from operant.envs.check import SMALL, finite
from operant.envs.nested_spaces import named, unflatten

if TYPE_CHECKING:  # these modules import torch, which environment workers do without
    from operant.core.experience import Arrays
    from operant.core.tree import Array


class ActionPreprocessor:
    """From actions as agents choose them to what the environment takes."""

    def __init__(self, space: Space) -> None:
        self.target = space
        self.parts = named(space, "action")
        self.spaces = {name: agent_space(part) for name, part in self.parts.items()}
        self.converters = {name: _converter(part) for name, part in self.parts.items()}
        single = not isinstance(space, gs.Dict | gs.Tuple)
        self._single = self.converters["action"] if single else None

    def __call__(self, action: Arrays) -> Any:
        if self._single is not None:
            return self._single(action["action"])
        parts = {name: convert(action[name]) for name, convert in self.converters.items()}
        return unflatten(self.target, parts, name="action")


class ActionCheck:
    """Raises an error for actions that are missing, of the wrong shape or outside their spaces."""

    def __init__(self, spaces: dict[str, Space]) -> None:
        self.spaces = spaces
        self._checks = [(n, tuple(s.shape or ()), partial(_inside, s)) for n, s in spaces.items()]

    def __call__(self, action: Arrays, lead: Shape) -> None:
        for name, shape, inside in self._checks:
            x = action.get(name)
            if x is None or x.shape != lead + shape or not inside(x):
                raise self._error(name, x, lead + shape)

    def _error(self, name: str, x: Array | None, shape: Shape) -> Exception:
        if x is None:
            return UsageError(f"action {name!r} is missing; expected {', '.join(self.spaces)}")
        if x.shape != shape:
            return UsageError(f"action {name!r} has shape {x.shape}; expected {shape}")
        shown = " ".join(str(x).split())
        if not np.isfinite(x).all():
            return TrainingFault(
                f"action {name!r} = {shown}: expected finite numbers, so the policy has diverged; "
                f"try a smaller learning rate or max_grad_norm"
            )
        return UsageError(f"action {name!r} = {shown}: expected values in {self.spaces[name]}")


def agent_space(space: Space) -> Space:
    """The space that agents choose from, for a space of the environment."""
    if isinstance(space, gs.Discrete):
        return gs.Discrete(int(space.n))
    if isinstance(space, gs.MultiDiscrete):
        return gs.MultiDiscrete(np.asarray(space.nvec))
    if isinstance(space, gs.Box):
        if space.is_bounded():
            return gs.Box(-1, 1, space.shape, dtype=np.float32)
        return gs.Box(space.low.astype("f4"), space.high.astype("f4"), dtype=np.float32)
    return space


@dataclass(frozen=True)
class _Shift:
    """Discrete values counted from `start`."""

    start: Any  # an int, or an array of them

    def __call__(self, x: Array) -> Any:
        return _plain_int(x) + self.start


class _Rescale:
    """From [-1, 1] to the bounds of the environment, where it has them; clipped in any case."""

    def __init__(self, box: gs.Box) -> None:
        self.low, self.high, self.dtype = box.low, box.high, np.dtype(box.dtype)
        if self.dtype.kind in "iu":  # the width of [-128, 127] is no int8
            self.low, self.high = self.low.astype(float), self.high.astype(float)
        with np.errstate(over="ignore"):
            self.half = 0.5 * (self.high - self.low) if box.is_bounded() else None
        self.middle: Array | None = None
        if self.half is not None and not np.isfinite(self.half).all():
            # So wide that the width overflows, as [-3.4e38, 3.4e38] does in float32.
            self.half = 0.5 * self.high - 0.5 * self.low
            self.middle = 0.5 * self.high + 0.5 * self.low

    def __call__(self, x: Array) -> Array:
        if self.middle is not None and self.half is not None:
            x = self.middle + x.clip(-1, 1) * self.half
        elif self.half is not None:
            x = self.low + (x + 1) * self.half
        x = x.clip(self.low, self.high)
        if self.dtype.kind in "iu":
            x = np.rint(x)
        return x.astype(self.dtype, copy=False)


def _plain_int(x: Array) -> Any:
    # A single number becomes an int: some environments look it up in a dict.
    return x if x.ndim else int(x)


def _unchanged(x: Array) -> Any:
    return x


def _converter(space: Space) -> Any:
    if isinstance(space, gs.Discrete):
        return _Shift(int(space.start)) if space.start else _plain_int
    if isinstance(space, gs.MultiDiscrete):
        return _Shift(space.start) if np.any(space.start) else _unchanged
    return _Rescale(space) if isinstance(space, gs.Box) else _unchanged


def _inside(space: Space, x: Array) -> bool:
    if isinstance(space, gs.Box):
        return x.dtype.kind in "fiu" and finite(x)
    if x.dtype.kind not in "iu":
        return False
    if isinstance(space, gs.MultiDiscrete):
        return bool((x >= 0).all() and (x < space.nvec).all())
    return _between(x, int(space.n)) if isinstance(space, gs.Discrete) else _between(x, 2)


def _between(x: Array, end: int) -> bool:
    """Whether all entries are in [0, end)."""
    if x.size <= SMALL:
        values = x.ravel().tolist()
        return bool(min(values) >= 0 and max(values) < end)
    return bool(x.min() >= 0 and x.max() < end)
