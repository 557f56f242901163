"""Parts of a network, typed by the rank of what they take.

A part sees a flat batch `[N, ...]`. Only a recurrent one tells time: its state has B rows, so N
rows are N / B moments, one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor, nn

from operant.core.errors import UsageError
from operant.core.experience import Tensors
from operant.core.spaces import Shape
from operant.networks.rank import convert, convert_shape

State = Mapping[str, Tensor]
NO_STATE: State = {}


class SubModule(nn.Module):
    """A part: subclasses give `_forward`, `_output_shape` and, with a memory, `_state_shapes`."""

    rank: int  # of the input, without the batch
    recurrent: bool = False
    idle: bool = False  # an identity, which need not be called
    byte_scale: float = 1 / 255  # a byte times this is what the part sees
    __call__: Callable[..., tuple[Tensor, Tensors]]  # `forward`; torch does not say what it gives

    def __init__(self, input_shape: Shape) -> None:
        super().__init__()
        if len(input_shape) != self.rank or any(size < 1 for size in input_shape):
            raise UsageError(
                f"{type(self).__name__}: input_shape {input_shape} has rank {len(input_shape)}; "
                f"expected {self.rank} sizes of at least 1"
            )
        self.input_shape = input_shape

    def forward(
        self, x: Tensor, state: State, first: Tensor | None = None, dim: int | None = None
    ) -> tuple[Tensor, Tensors]:
        """`x` `[N, ...]` to features read at rank `dim`, and the state carried out."""
        y, carried = self._forward(self.floats(x), state, first)
        return (y if dim is None else convert(y, dim)), carried

    def output_shape(self, dim: int | None = None) -> Shape:
        """The shape of one row of the result, read at rank `dim`."""
        shape = self._output_shape()
        return shape if dim is None else convert_shape(shape, dim)

    def initial_state(self, batch_size: int) -> Tensors:
        """A fresh state for `batch_size` rows."""
        like = next(self.parameters(), torch.empty(0))
        return {
            name: like.new_zeros(batch_size, *shape) for name, shape in self._state_shapes().items()
        }

    def _forward(self, x: Tensor, state: State, first: Tensor | None) -> tuple[Tensor, Tensors]:
        raise NotImplementedError

    def _output_shape(self) -> Shape:
        raise NotImplementedError

    def _state_shapes(self) -> dict[str, Shape]:
        return {}

    def floats(self, x: Tensor) -> Tensor:
        """`x` as the part reads it: bytes as fractions, other numbers as they are."""
        if x.dtype is torch.float32:
            return x
        if x.is_floating_point() and x.dtype is not torch.float64:
            return x  # reduced precision is somebody's choice
        if x.dtype is torch.uint8:
            # Scaled in place: a product of bytes and a number takes twice as long.
            return x.to(self._dtype(x.device.type)).mul_(self.byte_scale)
        return x.to(self._own_dtype())

    def _own_dtype(self) -> torch.dtype:
        return next((p.dtype for p in self.parameters()), torch.float32)

    def _dtype(self, device: str) -> torch.dtype:
        """What products are made of here: bytes become that at once, and no fraction is lost."""
        if torch.is_autocast_enabled(device):
            return torch.get_autocast_dtype(device)
        return self._own_dtype()


class SubModule1D(SubModule):
    """Takes features `(F)`."""

    rank = 1


class SubModule2D(SubModule):
    """Takes a sequence `(F, S)`."""

    rank = 2


class SubModule3D(SubModule):
    """Takes an image `(F, H, W)`."""

    rank = 3


class SubModule4D(SubModule):
    """Takes a sequence of images `(F, S, H, W)`."""

    rank = 4


class _PassOn:
    """What every identity does."""

    input_shape: Shape
    idle = True

    def _forward(self, x: Tensor, state: State, first: Tensor | None) -> tuple[Tensor, Tensors]:
        return x, {}

    def _output_shape(self) -> Shape:
        return self.input_shape


class Identity0D(_PassOn, SubModule):
    """Passes on single numbers, whose rows have no axis of their own."""

    rank = 0


class Identity1D(_PassOn, SubModule1D):
    """Passes on features."""


class Identity2D(_PassOn, SubModule2D):
    """Passes on a sequence."""


class Identity3D(_PassOn, SubModule3D):
    """Passes on an image."""


class Identity4D(_PassOn, SubModule4D):
    """Passes on a sequence of images."""


IDENTITIES: tuple[type[SubModule], ...] = (
    Identity0D,
    Identity1D,
    Identity2D,
    Identity3D,
    Identity4D,
)


def identity(shape: Shape) -> SubModule:
    """The identity for rows of `shape`."""
    if len(shape) >= len(IDENTITIES):
        raise UsageError(f"shape {shape} has rank {len(shape)}; expected at most 4; reshape it")
    return IDENTITIES[len(shape)](shape)


class Chain(SubModule):
    """Parts one after another, each reading the last one's result at its own rank."""

    def __init__(self, *parts: SubModule) -> None:
        self.rank = parts[0].rank
        super().__init__(parts[0].input_shape)
        for one, other in pairwise(parts):
            check_fit(type(one).__name__, one, type(other).__name__, other)
        self.parts = nn.ModuleList(parts)
        self.recurrent = any(part.recurrent for part in parts)

    def _forward(self, x: Tensor, state: State, first: Tensor | None) -> tuple[Tensor, Tensors]:
        carried: Tensors = {}
        for i, part in enumerate(self.parts):
            x = run(as_part(part), str(i), x, state, first, carried)
        return x, carried

    def _output_shape(self) -> Shape:
        return as_part(self.parts[-1]).output_shape()

    def _state_shapes(self) -> dict[str, Shape]:
        return {
            f"{i}.{key}": shape
            for i, part in enumerate(self.parts)
            for key, shape in as_part(part)._state_shapes().items()
        }


def as_part(module: nn.Module) -> SubModule:
    """What a container of torch gives back, as the part that it is."""
    return cast(SubModule, module)


def run(
    part: SubModule, path: str, x: Tensor, state: State, first: Tensor | None, carried: Tensors
) -> Tensor:
    """What `part` makes of `x`, with the state kept under `path`; adds its new one to `carried`."""
    x = convert(x, part.rank)
    if part.idle and x.dtype is torch.float32:
        return x
    if not part.recurrent:
        return part(x, NO_STATE)[0]
    own = within(state, path)
    if not own:
        raise UsageError(
            f"the hidden state has {sorted(state)} but nothing for {path!r}, which is recurrent; "
            "start from initial_state(batch_size) and pass on what the last step returned"
        )
    y, new = part(x, own, first)
    carried.update(under(path, new))
    return y


def within(state: State, path: str) -> Tensors:
    """The part of `state` that is kept under `path`, by its local names."""
    prefix = path + "."
    return {key[len(prefix) :]: x for key, x in state.items() if key.startswith(prefix)}


def under(path: str, state: State) -> Tensors:
    """`state` with `path` before each name."""
    return {f"{path}.{key}": x for key, x in state.items()}


def check_fit(giver: str, one: SubModule, taker: str, other: SubModule, joins: int = 0) -> None:
    """Refuse to join `one`, with `joins` more features beside it, to `other` of another shape."""
    given = convert_shape(one.output_shape(), other.rank)
    given = (given[0] + joins, *given[1:])
    if given != other.input_shape:
        raise UsageError(
            f"{giver} gives {one.output_shape()}, {given} at rank {other.rank}, but {taker} takes "
            f"{other.input_shape}; make these equal"
        )


def module_dict(modules: Mapping[str, nn.Module]) -> nn.ModuleDict:
    """Modules under `key(name)`, in order."""
    keyed = {key(name): module for name, module in modules.items()}
    if len(keyed) < len(modules):
        raise UsageError(f"names {sorted(modules)}: two of them differ only in '.' and '/'")
    return nn.ModuleDict(keyed)


def key(name: str) -> str:
    """`name` as torch allows it for a module: without dots, and not a method of its dict."""
    safe = name.replace(".", "/")
    return safe + "/" if hasattr(nn.ModuleDict, safe) else safe
