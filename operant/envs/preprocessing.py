"""What stands between a simulator and the record: small operations on spaces and on arrays.

Arrays may have any leading dimensions, so one operation serves one environment and a batch of them.
In the record observations are float32 or uint8, images are channel-first, masks are bool, discrete
actions count from zero and bounded Box actions span [-1, 1].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from gymnasium import spaces as gs

from operant.core.errors import TrainingFault, UsageError
from operant.core.spaces import MASK, Shape, Space, choices, is_mask, named, unflatten

if TYPE_CHECKING:  # these modules import torch, which environment workers do without
    from operant.core.experience import Arrays
    from operant.core.tree import Array


FEW = 64  # so many numbers Python looks through faster than NumPy can be called


class Operation(Protocol):
    """Changes one observation, called `field`: its space once, its arrays at every step."""

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
    """Whole numbers as one-hot vectors, laid one after the other."""

    field: str
    sizes: tuple[int, ...]  # how many values each number takes
    starts: tuple[int, ...]  # the least value of each number
    rank: int  # of the array that holds them

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
    """A vector without the entries at `indices`."""

    field: str
    indices: tuple[int, ...]

    def space(self, space: Space) -> Space:
        if not isinstance(space, gs.Box) or len(space.shape) != 1:
            raise UsageError(
                f"hide = {self.indices}: the observation is {space}; "
                f"expected a plain vector, a Box of rank 1; leave `hide` empty"
            )
        beyond = [i for i in self.indices if not 0 <= i < space.shape[0]]
        if beyond or len(set(self.indices)) >= space.shape[0]:
            raise UsageError(
                f"hide = {self.indices}: expected indices from 0 to {space.shape[0] - 1}, not all"
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
        """The spaces of what comes out."""
        spaces = dict(spaces)
        for operation in self.operations:
            if operation.field not in spaces:
                known = ", ".join(spaces)
                raise UsageError(
                    f"operation {operation}: no observation {operation.field!r}; there is {known}"
                )
            spaces[operation.field] = operation.space(spaces[operation.field])
        return spaces

    def __call__(self, observation: Arrays) -> Arrays:
        for operation in self.operations:
            observation[operation.field] = operation(observation[operation.field])
        return observation


def standard(spaces: dict[str, Space]) -> list[Operation]:
    """The operations that bring observations of these spaces to the units of the record."""
    return [operation for name, space in spaces.items() for operation in _standard(name, space)]


def _standard(name: str, space: Space) -> list[Operation]:
    if is_mask(name):
        return [Cast(name, "bool")]
    if isinstance(space, gs.Discrete):
        return [OneHot(name, (int(space.n),), (int(space.start),), 0)]
    if isinstance(space, gs.MultiDiscrete):
        starts = tuple(int(i) for i in np.ravel(space.start))
        return [OneHot(name, tuple(choices(space)), starts, len(_shape(space)))]
    # A bool image stays no uint8: networks divide those by 255.
    found: list[Operation] = []
    if space.dtype not in (np.float32, np.uint8):
        found.append(Cast(name))
    shape = _shape(space)
    if len(shape) == 3 and shape[-1] < min(shape[:2]):
        found.append(ChannelFirst(name))
    return found


class ActionPreprocessor:
    """From actions as agents emit them to what the environment takes."""

    def __init__(self, space: Space) -> None:
        self.target = space
        self.parts = named(space, "action")
        self.spaces = {name: emitted(part) for name, part in self.parts.items()}
        self.converters = {name: _converter(part) for name, part in self.parts.items()}
        alone = not isinstance(space, gs.Dict | gs.Tuple)
        self._plain = self.converters["action"] if alone else None

    def __call__(self, action: Arrays) -> Any:
        if self._plain is not None:
            return self._plain(action["action"])
        parts = {name: convert(action[name]) for name, convert in self.converters.items()}
        return unflatten(self.target, parts, name="action")


class ActionCheck:
    """Refuses actions that are missing, of the wrong shape or outside their spaces."""

    def __init__(self, spaces: dict[str, Space]) -> None:
        self.spaces = spaces
        self._checks = [(n, _shape(s), partial(_inside, s)) for n, s in spaces.items()]

    def __call__(self, action: Arrays, lead: Shape) -> None:
        for name, shape, inside in self._checks:
            x = action.get(name)
            if x is None or x.shape != lead + shape or not inside(x):
                raise self._refusal(name, x, lead + shape)

    def _refusal(self, name: str, x: Array | None, shape: Shape) -> Exception:
        if x is None:
            return UsageError(f"action {name!r} is missing; expected {', '.join(self.spaces)}")
        if x.shape != shape:
            return UsageError(f"action {name!r} has shape {x.shape}; expected {shape}")
        shown = " ".join(str(x).split())
        if not np.isfinite(x).all():
            return TrainingFault(f"action {name!r} = {shown}: the policy gives no numbers any more")
        return UsageError(f"action {name!r} = {shown}: expected values in {self.spaces[name]}")


def emitted(space: Space) -> Space:
    """The space of an action part as agents emit it."""
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
        self.half = 0.5 * (box.high - box.low) if box.is_bounded() else None

    def __call__(self, x: Array) -> Array:
        if self.half is not None:
            x = self.low + (x + 1) * self.half
        x = x.clip(self.low, self.high)
        if self.dtype.kind in "iu":
            x = np.rint(x)
        return x.astype(self.dtype, copy=False)


def _plain_int(x: Array) -> Any:
    # A lone number becomes an int: some environments look it up in a dict.
    return x if x.ndim else int(x)


def _as_is(x: Array) -> Any:
    return x


def _converter(space: Space) -> Any:
    if isinstance(space, gs.Discrete):
        return _Shift(int(space.start)) if space.start else _plain_int
    if isinstance(space, gs.MultiDiscrete):
        return _Shift(space.start) if np.any(space.start) else _as_is
    return _Rescale(space) if isinstance(space, gs.Box) else _as_is


def _inside(space: Space, x: Array) -> bool:
    if isinstance(space, gs.Box):
        return x.dtype.kind in "fiu" and finite(x)
    if x.dtype.kind not in "iu":
        return False
    if isinstance(space, gs.MultiDiscrete):
        return bool((x >= 0).all() and (x < space.nvec).all())
    return _between(x, int(space.n)) if isinstance(space, gs.Discrete) else _between(x, 2)


def _between(x: Array, end: int) -> bool:
    """Whether all entries are from 0 to before `end`."""
    if x.size <= FEW:
        values = x.ravel().tolist()
        return bool(min(values) >= 0 and max(values) < end)
    return bool(x.min() >= 0 and x.max() < end)


def finite(x: Array) -> bool:
    """Whether no entry is NaN or infinite; one cheap product unless something looks wrong."""
    flat = x.ravel("K")
    if flat.size <= FEW:
        return math.isfinite(sum(flat.tolist()))
    return math.isfinite(flat.dot(flat)) or bool(np.isfinite(x).all())


def check_masks(observation: dict[str, Space], action: dict[str, Space]) -> None:
    """Refuse masks that belong to no discrete action, or are not of its size."""
    for name in filter(is_mask, observation):
        target = name[len(MASK) + 1 :] or next(iter(action))
        if target not in action or (name == MASK and len(action) > 1):
            wanted = ", ".join(f"{MASK}.{part}" for part in action)
            raise UsageError(f"observation {name!r} masks no action; expected {wanted}")
        entries = sum(choices(action[target]))
        if not entries:
            raise UsageError(
                f"observation {name!r}: action {target!r} is {action[target]}, and only discrete "
                f"actions can be masked; take the mask out of the observation"
            )
        if _shape(observation[name]) != (entries,):
            raise UsageError(
                f"observation {name!r} has shape {_shape(observation[name])}; expected "
                f"({entries},), one entry for each choice of {target!r}, laid end to end"
            )


def info_masks(info: dict[str, Any]) -> Arrays:
    """Masks over actions that an environment tells beside its observation."""
    value = info.get(MASK)
    if value is None:
        return {}
    if isinstance(value, dict):
        return {f"{MASK}.{name}": _joined(part) for name, part in value.items()}
    return {MASK: _joined(value)}


def _joined(mask: Any) -> Array:
    parts = mask if isinstance(mask, tuple) else (mask,)
    return np.concatenate([np.asarray(part).astype(bool) for part in parts], axis=-1)


def _shape(space: Space) -> Shape:
    assert space.shape is not None  # `named` gives only spaces with one
    return tuple(space.shape)
