"""Parts that take features: fully connected layers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise, starmap
from typing import Literal

from torch import Tensor, nn
from torch.nn import functional as F

from operant.core.errors import UsageError, suggest
from operant.core.experience import Tensors
from operant.core.spaces import Shape
from operant.networks.submodule import State, SubModule1D

Activation = Literal["tanh", "relu", "elu", "gelu", "silu"]
# In place where that is possible: their input is a product that nothing else uses.
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": Tensor.tanh_,
    "relu": Tensor.relu_,
    "elu": partial(F.elu, inplace=True),
    "gelu": F.gelu,
    "silu": partial(F.silu, inplace=True),
}


class MLP(SubModule1D):
    """Fully connected layers of `sizes`, each with its activation; without sizes, the input."""

    def __init__(
        self, input_shape: Shape, sizes: tuple[int, ...] = (64, 64), activation: Activation = "tanh"
    ) -> None:
        super().__init__(input_shape)
        if any(size < 1 for size in sizes):
            raise UsageError(f"MLP: sizes {sizes}: expected each to be at least 1")
        if activation not in ACTIVATIONS:
            known = suggest(activation, ACTIVATIONS)
            raise UsageError(f"MLP: activation {activation!r} is unknown{known}")
        self.sizes, self.activation = sizes, activation
        self.layers = nn.ModuleList(starmap(nn.Linear, pairwise((*input_shape, *sizes))))

    def _forward(self, x: Tensor, state: State, first: Tensor | None) -> tuple[Tensor, Tensors]:
        activate = ACTIVATIONS[self.activation]
        for layer in self.layers:
            x = activate(layer(x))
        return x, {}

    def extra_repr(self) -> str:
        return f"activation={self.activation}"

    def _output_shape(self) -> Shape:
        return self.sizes[-1:] or self.input_shape
