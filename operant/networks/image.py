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


class ConvNet(SubModule3D):
    """Convolutions with ReLU, then a fully connected layer of `size`; none if `size` is zero.

    Bytes are read as fractions of 255.
    """

    remedy = "take fewer or smaller layers"

    def __init__(self, input_shape: Shape, layers: Layers, size: int = 0) -> None:
        super().__init__(input_shape)
        self.layers = nn.Sequential()
        shape = input_shape
        for channels, kernel, stride in layers:
            self.layers.append(nn.Conv2d(shape[0], channels, kernel, stride))
            self.layers.append(nn.ReLU(inplace=True))
            shape = (channels, *((side - kernel) // stride + 1 for side in shape[1:]))
            if min(shape) < 1:
                raise UsageError(
                    f"{type(self).__name__}: an image of {input_shape[1]}x{input_shape[2]} is too "
                    f"small for layers {layers} (channels, kernel, stride); {self.remedy}"
                )
        if size:
            self.layers.extend([nn.Flatten(), nn.Linear(prod(shape), size), nn.ReLU(inplace=True)])
            shape = (size,)
        self._shape = shape
        # On a CPU, Nature's layers learn in 9 to 25 % less time this way; a single one is slower.
        self._format = torch.channels_last if len(layers) > 1 else torch.contiguous_format

    def _forward(self, x: Tensor, state: State, first: Tensor | None) -> tuple[Tensor, Tensors]:
        return self.layers(x.contiguous(memory_format=self._format)), {}

    def _output_shape(self) -> Shape:
        return self._shape


class NatureCNN(ConvNet):
    """The network of Mnih et al. (2015), for images of at least 36x36."""

    remedy = "it takes at least 36x36; take SmallCNN"

    def __init__(self, input_shape: Shape, size: int = 512) -> None:
        super().__init__(input_shape, ((32, 8, 4), (64, 4, 2), (64, 3, 1)), size)


class SmallCNN(ConvNet):
    """The network of Young and Tian (2019) for MinAtar's 10x10 images."""

    remedy = "it takes at least 3x3; flatten smaller images to vectors"

    def __init__(self, input_shape: Shape, size: int = 128) -> None:
        super().__init__(input_shape, ((16, 3, 1),), size)
