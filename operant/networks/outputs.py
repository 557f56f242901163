"""What comes out of a network: its layers by rank, and the names that may be asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import torch
from torch import Tensor, nn

from operant.core.errors import UsageError, suggest
from operant.core.spaces import FREE_STD, Shape
from operant.networks.submodule import SubModule

CONVOLUTIONS: dict[int, type[nn.Module]] = {2: nn.Conv1d, 3: nn.Conv2d, 4: nn.Conv3d}


class FreeOutput(nn.Module):
    """An output that does not depend on what is seen: a parameter, zero at first, in every row."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.value = nn.Parameter(torch.zeros(size))

    def forward(self, x: Tensor) -> Tensor:
        return self.value.expand(len(x), -1)


def output_layer(name: str, head: SubModule, shape: Shape) -> nn.Module:
    """A linear map of features: the same at each position, where there are positions."""
    rank = max(1, len(shape))
    given = head.output_shape(rank)
    if given[1:] != shape[1:]:
        raise UsageError(
            f"output {name!r} has the shape {shape}, but its head gives {given}; "
            "expected the same sizes after the first; give a head that makes them"
        )
    if name.startswith(FREE_STD):
        return FreeOutput(shape[0])
    if rank == 1:
        return nn.Linear(given[0], shape[0] if shape else 1)
    return CONVOLUTIONS[rank](given[0], shape[0], 1)


def shaped(y: Tensor, times: Shape, shape: Shape) -> Tensor:
    """Rows `[N, ...]` as `[*times, *shape]`; without times they stay rows."""
    if times:
        return y.reshape(*times, *shape)
    return y if shape else y.squeeze(1)


def check_known(wanted: Iterable[str], known: Collection[str]) -> None:
    """Refuse outputs that nothing gives."""
    for name in wanted:
        if name not in known:
            raise UsageError(f"output {name!r} is unknown{suggest(name, known)}")
