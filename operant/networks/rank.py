"""The rank algebra: how features of one rank are read at another, by reshaping alone.

Shapes leave out the batch. Rank 1 is `(F)`, 2 is `(F, S)`, 3 is `(F, H, W)`, 4 is `(F, S, H, W)`:
features, a sequence, and height and width. A single number, `()`, is read as one feature.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from torch import Tensor

from operant.core.errors import UsageError
from operant.core.spaces import Shape

RANKS = (1, 2, 3, 4)


def convert_shape(shape: Shape, rank: int) -> Shape:
    """`shape` as it reads at `rank`; the number of elements stays."""
    if len(shape) == rank:
        return shape
    if len(shape) > 4 or rank not in RANKS:
        raise UsageError(f"shape {shape} at rank {rank}: expected a rank from 1 to 4; reshape it")
    features = shape[0] if shape else 1
    sequence = shape[1] if len(shape) in (2, 4) else 1
    height, width = shape[-2:] if len(shape) > 2 else (1, 1)
    return {
        1: (prod(shape),),
        2: (features, sequence * height * width),
        3: (features * sequence, height, width),
        4: (features, sequence, height, width),
    }[rank]


def convert(x: Tensor, rank: int) -> Tensor:
    """A flat batch `[N, ...]` with its features read at `rank`."""
    if x.dim() == rank + 1:
        return x
    return x.reshape(x.shape[0], *convert_shape(tuple(x.shape[1:]), rank))


def check_joined(parts: Mapping[str, Shape], target: Shape) -> None:
    """Refuse parts that cannot stand side by side along the features of `target`."""
    for name, shape in parts.items():
        at_rank = convert_shape(shape, len(target))
        if any(
            size not in (1, wanted) for size, wanted in zip(at_rank[1:], target[1:], strict=True)
        ):
            raise UsageError(
                f"{name} gives {shape}, {at_rank} at rank {len(target)}, which does not fit beside "
                f"the {target} that the body takes; expected sizes equal to its own, or 1"
            )
    features = sum(convert_shape(shape, len(target))[0] for shape in parts.values())
    if features != target[0]:
        given = ", ".join(f"{name} {shape}" for name, shape in parts.items())
        raise UsageError(
            f"the body takes {target}, but its sources ({given}) give {features} features; "
            f"make its input_shape {(features, *target[1:])}"
        )
