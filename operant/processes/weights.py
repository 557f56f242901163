"""An actor for other processes: pickled once, with weights that lie in shared memory."""

from __future__ import annotations

import io
import math
import pickle
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from operant.core.protocols import Actor
from operant.processes.shared_memory import Allocate

BYTE = np.dtype(np.uint8)


class TensorLayout(NamedTuple):
    """How a weight lies in memory."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    parameter: bool  # an `nn.Parameter`, not a buffer

    @classmethod
    def of(cls, x: Tensor) -> TensorLayout:
        """The layout of a weight; strides are kept, since rounding in products depends on them."""
        dense = x.is_contiguous() or x.is_contiguous(memory_format=torch.channels_last)
        like = x if dense else torch.empty(x.shape, device="meta")
        return cls(x.dtype, tuple(x.shape), like.stride(), isinstance(x, nn.Parameter))

    def tensor(self, allocate: Allocate) -> Tensor:
        """A new tensor of this layout."""
        size = math.prod(self.shape) * self.dtype.itemsize
        flat = allocate((size,), BYTE)
        if flat.nbytes < size:  # the allocator only counts
            return torch.empty(0)
        return torch.from_numpy(flat).view(self.dtype).as_strided(self.shape, self.stride)


class PackedActor(NamedTuple):
    """A pickled actor, and beside it the weights of its networks."""

    data: bytes
    weights: list[Tensor]
    layouts: list[TensorLayout]


def pack(actor: Actor) -> PackedActor:
    """Pickle an actor without its weights."""
    file = io.BytesIO()
    pickler = _Pickler(file)
    pickler.dump(actor)
    return PackedActor(
        file.getvalue(), pickler.weights, [TensorLayout.of(x) for x in pickler.weights]
    )


def unpack(data: bytes, layouts: list[TensorLayout], weights: list[Tensor]) -> Actor:
    """The actor again, with these tensors as its weights."""
    unpickler = _Unpickler(io.BytesIO(data))
    pairs = zip(weights, layouts, strict=True)
    # Parameters again, though nothing is learned here: autocast caches its casts of no others.
    unpickler.weights = [nn.Parameter(x) if layout.parameter else x for x, layout in pairs]
    found: Actor = unpickler.load()
    return found


@torch.no_grad()
def publish(source: list[Tensor], shared: list[Tensor]) -> None:
    """Copy weights to where other processes see them."""
    torch._foreach_copy_(shared, source)


class _Pickler(pickle.Pickler):
    """Leaves the weights of modules out, and records which they were."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.weights: list[Tensor] = []
        self._indices: dict[int, int] = {}

    def persistent_id(self, part: Any) -> int | None:
        if isinstance(part, nn.Module):  # seen before anything that is in it
            for weight in chain(part.parameters(), part.buffers()):
                if id(weight) not in self._indices:
                    self._indices[id(weight)] = len(self.weights)
                    self.weights.append(weight)
        return self._indices.get(id(part)) if isinstance(part, Tensor) else None


class _Unpickler(pickle.Unpickler):
    """Puts weights back where they were left out."""

    weights: list[Tensor]

    def persistent_load(self, index: int) -> Tensor:
        return self.weights[index]
