"""An actor for other processes: sent once, with weights that lie in shared memory."""

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
from operant.memory.rollout import Allocate

BYTE = np.dtype(np.uint8)


class Form(NamedTuple):
    """What a weight looks like in memory."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    learned: bool  # a parameter, not a buffer

    @classmethod
    def of(cls, x: Tensor) -> Form:
        """The form of a weight; its layout is kept, since products round by it."""
        dense = x.is_contiguous() or x.is_contiguous(memory_format=torch.channels_last)
        like = x if dense else torch.empty(x.shape, device="meta")
        return cls(x.dtype, tuple(x.shape), like.stride(), isinstance(x, nn.Parameter))

    def lay(self, allocate: Allocate) -> Tensor:
        """A weight of this form."""
        size = math.prod(self.shape) * self.dtype.itemsize
        flat = allocate((size,), BYTE)
        if flat.nbytes < size:  # only counted
            return torch.empty(0)
        return torch.from_numpy(flat).view(self.dtype).as_strided(self.shape, self.stride)


class Packed(NamedTuple):
    """An actor, and the weights it had, which are not part of `data`."""

    data: bytes
    weights: list[Tensor]
    forms: list[Form]


def pack(actor: Actor) -> Packed:
    """Make an actor ready to be sent."""
    file = io.BytesIO()
    packer = _Packer(file)
    packer.dump(actor)
    return Packed(file.getvalue(), packer.weights, [Form.of(x) for x in packer.weights])


def unpack(data: bytes, forms: list[Form], weights: list[Tensor]) -> Actor:
    """The actor again, over these weights."""
    unpacker = _Unpacker(io.BytesIO(data))
    pairs = zip(weights, forms, strict=True)
    # They could learn here as well: autocast remembers what it has made of no others.
    unpacker.weights = [nn.Parameter(x) if form.learned else x for x, form in pairs]
    found: Actor = unpacker.load()
    return found


@torch.no_grad()
def publish(source: list[Tensor], shared: list[Tensor]) -> None:
    """Copy weights to where other processes see them."""
    torch._foreach_copy_(shared, source)


class _Packer(pickle.Pickler):
    """Leaves the weights of modules out, and notes which they were."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.weights: list[Tensor] = []
        self._places: dict[int, int] = {}

    def persistent_id(self, part: Any) -> int | None:
        if isinstance(part, nn.Module):  # seen before anything that is in it
            for weight in chain(part.parameters(), part.buffers()):
                if id(weight) not in self._places:
                    self._places[id(weight)] = len(self.weights)
                    self.weights.append(weight)
        return self._places.get(id(part)) if isinstance(part, Tensor) else None


class _Unpacker(pickle.Unpickler):
    """Puts the weights back in their places."""

    weights: list[Tensor]

    def persistent_load(self, place: int) -> Tensor:
        return self.weights[place]
