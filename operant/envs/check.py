"""Checks that environments keep to their spaces; errors name environment, key and step."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces as gs

from operant.core.conversion import MAX_FLOAT, quoted
from operant.core.errors import EnvironmentFault
from operant.core.spaces import Shape, Space, is_mask
from operant.envs.nested_spaces import flatten, named

if TYPE_CHECKING:  # these modules import torch, which environment workers do without
    from operant.core.experience import Arrays
    from operant.core.tree import Array

TOO_LARGE = "float32, in which networks compute, holds at most 3.4e+38; scale it"
SMALL = 64  # up to so many numbers, plain Python is faster than a call of NumPy


class Guard:
    """Checks raw observations and rewards of one environment, or of a batch (`lead` (B,))."""

    def __init__(self, env_id: str, space: Space, lead: Shape = (), index: int = 0) -> None:
        self.env_id, self.space, self.lead, self.index = env_id, space, lead, index
        self.spaces = named(space, "observation")
        self.steps = 0
        self._shapes = {name: (*lead, *(s.shape or ())) for name, s in self.spaces.items()}
        self._dtypes = {name: np.dtype(space.dtype) for name, space in self.spaces.items()}
        floats = isinstance(space, gs.Box) and space.dtype == np.float32
        self._plain = (self._shapes["observation"], np.dtype("f4")) if floats else None
        self._integers = [n for n, s in self.spaces.items() if _is_integer(s) and not is_mask(n)]

    def observation(self, value: Any) -> Arrays:
        """`value` as arrays by name, in the dtypes of their spaces."""
        # A faster path for the common case of one float32 array.
        common = type(value) is np.ndarray and self._plain == (value.shape, value.dtype)
        if common and finite(value):
            return {"observation": value}
        nested = type(self.space) in (gs.Dict, gs.Tuple)
        found = self._flattened(value) if nested else {"observation": value}
        for name, shape in self._shapes.items():
            x = self._array(name, found[name])
            if x.shape != shape or x.dtype != self._dtypes[name]:
                x = self._cast(name, x, shape)
            if x.dtype.kind == "f" and not (finite(x) if x.itemsize <= 4 else in_float32(x)):
                raise self._not_finite(f"observation {name!r}", x)
            found[name] = x
        for name in self._integers:
            self._within(name, found[name])
        return found

    def reward(self, value: Any) -> float:
        """A number from a bool, an int or an array of one entry; never None or NaN."""
        try:
            reward = float(np.asarray(value).item())
        except (TypeError, ValueError):
            message = f"reward is {value!r}; expected one number"
            raise self.fault(message) from None
        if not math.isfinite(reward):
            raise self.fault(f"reward is {reward}; expected a finite number")
        if abs(reward) > MAX_FLOAT:
            raise self.fault(f"reward is {reward:g}; {TOO_LARGE}")
        return reward

    def rewards(self, value: Any) -> Array:
        """The rewards of a batch as float32."""
        rewards = np.asarray(value)
        if rewards.shape != self.lead:
            raise self.fault(f"rewards have shape {rewards.shape}; expected {self.lead}")
        if not in_float32(rewards):
            raise self._not_finite("reward", rewards)
        return rewards.astype(np.float32, copy=False)

    def fault(self, message: str, index: int | None = None) -> EnvironmentFault:
        """An error that says where it happened."""
        at = self.index if index is None else index
        return EnvironmentFault(f"{self.env_id}, environment {at}, step {self.steps}: {message}")

    def _flattened(self, value: Any) -> dict[str, Any]:
        try:
            return flatten(self.space, value, "observation")
        except (KeyError, TypeError, IndexError) as error:
            keys = ", ".join(self.spaces)
            raise self.fault(
                f"the observation lacks a key ({error!r}); expected {keys}; got {_summary(value)}"
            ) from None

    def _array(self, name: str, value: Any) -> Array:
        try:
            return np.asarray(value)
        except ValueError:  # of lists of different lengths
            shape = self._shapes[name]
            what = f"observation {name!r} is {quoted(value)}, which is no array"
            raise self.fault(f"{what}; expected shape {shape}") from None

    def _cast(self, name: str, x: Array, shape: Shape) -> Array:
        dtype = self._dtypes[name]
        kinds = {"b": "biu", "i": "biu", "u": "biu", "f": "biuf"}[dtype.kind]
        if x.dtype.kind not in kinds:
            what = "None" if x.dtype == object and x.shape == () and x.item() is None else x.dtype
            raise self.fault(f"observation {name!r} is {what}; expected {dtype} as its space says")
        if x.shape != shape:
            raise self.fault(f"observation {name!r} has shape {x.shape}; expected {shape}")
        if dtype.kind in "iu" and x.size:
            limits = np.iinfo(dtype)
            if x.min() < limits.min or x.max() > limits.max:
                worst = x.min() if x.min() < limits.min else x.max()
                raise self.fault(f"observation {name!r} has {worst}, which {dtype} cannot hold")
        if dtype.kind == "f" and not in_float32(x):
            raise self._not_finite(f"observation {name!r}", x)
        return x.astype(dtype)

    def _not_finite(self, what: str, x: Array) -> EnvironmentFault:
        index, bad = None, ~(np.abs(x) <= MAX_FLOAT)
        if self.lead:
            index = int(np.nonzero(bad)[0][0])
            x, bad = x[index], bad[index]
        if np.isfinite(x).all():
            return self.fault(f"{what} has {x[bad].flat[0]:g}; {TOO_LARGE}", index)
        kind = "NaN" if np.isnan(x).any() else "infinite"
        return self.fault(f"{what} is {kind}; expected finite numbers", index)

    def _within(self, name: str, x: Array) -> None:
        space = self.spaces[name]
        start = np.asarray(getattr(space, "start", 0))
        size = np.asarray(space.n if isinstance(space, gs.Discrete) else space.nvec)  # type: ignore[attr-defined]  # _is_integer
        if not ((x >= start) & (x < start + size)).all():
            raise self.fault(f"observation {name!r} = {x}; expected values in {space}")


def finite(x: Array) -> bool:
    """Whether no entry is NaN or infinite; one cheap product unless something looks wrong."""
    flat = x.ravel("K")
    if flat.size <= SMALL:
        return math.isfinite(sum(flat.tolist()))
    return math.isfinite(flat.dot(flat)) or bool(np.isfinite(x).all())


def in_float32(x: Array) -> bool:
    """Whether every entry is a number that float32 holds."""
    if x.dtype.kind != "f" or x.itemsize <= 4:
        return x.dtype.kind != "f" or finite(x)
    if 0 < x.size <= SMALL:
        values = x.ravel("K").tolist()
        return math.isfinite(sum(values)) and -MAX_FLOAT <= min(values) <= max(values) <= MAX_FLOAT
    return bool((np.abs(x) <= MAX_FLOAT).all())


def _is_integer(space: Space) -> bool:
    return isinstance(space, gs.Discrete | gs.MultiDiscrete)


def _summary(value: Any) -> str:
    return (
        f"a dict of {', '.join(map(str, value))}" if isinstance(value, dict) else repr(value)[:80]
    )
