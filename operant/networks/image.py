"""Parts that take images `(channels, height, width)`, whole numbers or real ones."""

from __future__ import annotations

from math import prod

import torch
from torch import Tensor, nn

from operant.core.errors import UsageError
from operant.core.experience import Tensors
from operant.core.spaces import Shape
from operant.networks.submodule import State, SubModule3D

Layers = tuple[tuple[int, int, int], ...]  # channels, kernel and stride of each convolution


class _Convolutions:
    """What parts made of convolutions do alike."""

    layers: nn.Sequential
    features: Shape  # the shape of the result
    memory_format: torch.memory_format

    def _forward(self, x: Tensor, state: State, first: Tensor | None) -> tuple[Tensor, Tensors]:
        return self.layers(x.contiguous(memory_format=self.memory_format)), {}

    def _output_shape(self) -> Shape:
        return self.features

    def build(self, input_shape: Shape, layers: Layers, size: int, remedy: str) -> None:
        """Convolutions with ReLU, then a fully connected layer of `size`; none if it is zero."""
        self.layers, shape = nn.Sequential(), input_shape
        for channels, kernel, stride in layers:
            self.layers.append(nn.Conv2d(shape[0], channels, kernel, stride))
            self.layers.append(nn.ReLU(inplace=True))
            shape = (channels, *((side - kernel) // stride + 1 for side in shape[1:]))
            if min(shape) < 1:
                raise UsageError(
                    f"{type(self).__name__}: an image of {input_shape[1]}x{input_shape[2]} is too "
                    f"small for layers {layers} (channels, kernel, stride); {remedy}"
                )
        if size:
            self.layers.extend([nn.Flatten(), nn.Linear(prod(shape), size), nn.ReLU(inplace=True)])
        self.features = (size,) if size else shape
        # On a CPU, Nature's layers learn in 9 to 25 % less time this way; a single one is slower.
        wide = len(layers) > 1
        self.memory_format = torch.channels_last if wide else torch.contiguous_format


class ConvNet(_Convolutions, SubModule3D):
    """Convolutions of one's own. Bytes are read as fractions of 255."""

    def __init__(self, input_shape: Shape, layers: Layers, size: int = 0) -> None:
        super().__init__(input_shape)
        self.build(input_shape, layers, size, "take fewer or smaller layers")


class NatureCNN(_Convolutions, SubModule3D):
    """The network of Mnih et al. (2015), for images of at least 36x36."""

    def __init__(self, input_shape: Shape, size: int = 512) -> None:
        super().__init__(input_shape)
        remedy = "it takes at least 36x36; take SmallCNN"
        self.build(input_shape, ((32, 8, 4), (64, 4, 2), (64, 3, 1)), size, remedy)


class SmallCNN(_Convolutions, SubModule3D):
    """The network of Young and Tian (2019) for MinAtar's 10x10 images."""

    def __init__(self, input_shape: Shape, size: int = 128) -> None:
        super().__init__(input_shape)
        remedy = "it takes at least 3x3; flatten smaller images to vectors"
        self.build(input_shape, ((16, 3, 1),), size, remedy)
