"""Fully connected networks for the few rows that acting has, in NumPy.

A call of torch on a handful of rows takes about five times as long as one of NumPy, which sees the
same bytes, so that there is nothing to copy when the weights change. For eight rows and a policy of
64×64, between two steps of an environment: 0.04 ms instead of 0.23.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor, nn

from operant.core.experience import Arrays, Tensors
from operant.core.protocols import ROW_BLOCK
from operant.core.tree import Array
from operant.networks.outputs import FreeOutput

if TYPE_CHECKING:
    from operant.networks.modular import ModularNetwork

PRODUCT_ROWS = 8  # rows multiplied at a time: in larger products a row's rounding depends on others
ACTIVATIONS: dict[str, Callable[..., Any]] = {
    "tanh": lambda x: np.tanh(x, out=x),
    "relu": lambda x: np.maximum(x, 0.0, out=x),
}


class NumpyNetwork:
    """Fully connected layers from observations `[B, F]` to outputs by name, without a gradient."""

    def __init__(self, network: ModularNetwork, outputs: tuple[str, ...]) -> None:
        stem = network.fully_connected()
        assert stem is not None, "the network has other layers"
        self.watched: list[tuple[dict[str, Any], str, Any]] = []  # where it must not have changed
        self.places: list[tuple[Tensor, int]] = []  # where the weights must still lie
        self._watch(network, "body", "heads", "sources", "outputs", "normalizer")
        self._watch(network.sources, *network.sources)
        self._watch(network.heads, *network.heads)
        self._watch(stem, "layers")
        self._watch(stem.layers, *(str(i) for i in range(len(stem.layers))))
        self.width = stem.output_shape(1)[0]
        self.sources = network.named_sources()
        self.activate = ACTIVATIONS[stem.activation]
        self.layers = [self._arrays(layer) for layer in stem.layers]
        found = {name: network.output_layer(name) for name in outputs}
        self._watch(network.outputs, *network.outputs)
        self.outputs = {name: self._arrays(layer) for name, layer in found.items()}

    def __call__(self, observation: Tensors) -> Arrays:
        """The outputs `[B, n]`; a row's do not depend on the others."""
        parts = [s.floats(observation[name]).cpu().numpy() for name, s in self.sources]
        x = parts[0] if len(parts) == 1 else np.concatenate(parts, 1)
        count = len(x)
        if count % ROW_BLOCK:
            x = x[np.arange(-(-count // ROW_BLOCK) * ROW_BLOCK) % count]
        x = x.reshape(-1, ROW_BLOCK if len(x) % PRODUCT_ROWS else PRODUCT_ROWS, x.shape[1])
        for weight, bias in self.layers:
            x = np.matmul(x, weight)
            x += bias
            self.activate(x)
        return {
            name: (np.matmul(x, weight) + bias).reshape(-1, len(bias))[:count]
            for name, (weight, bias) in self.outputs.items()
        }

    def current(self) -> bool:
        """Whether no part or parameter of the network was put in another's place since."""
        for owner, name, part in self.watched:
            if owner.get(name) is not part:
                return False
        return all(weight.data_ptr() == place for weight, place in self.places)

    def _watch(self, owner: nn.Module, *names: str) -> None:
        self.watched += [(owner._modules, name, owner._modules.get(name)) for name in names]

    def _arrays(self, layer: nn.Module) -> tuple[Array, Array]:
        for name, weight in layer.named_parameters():
            self.watched.append((layer._parameters, name, weight))
            self.places.append((weight, weight.data_ptr()))
        if isinstance(layer, FreeOutput):  # as a layer that weighs nothing, and its bias
            value = layer.value.detach().numpy()
            return np.zeros((self.width, len(value)), np.float32), value
        assert isinstance(layer, nn.Linear)
        return layer.weight.detach().numpy().T, layer.bias.detach().numpy()


def numpy_network(network: ModularNetwork, outputs: tuple[str, ...] | None) -> NumpyNetwork | None:
    """The network in NumPy, if it is one that NumPy can stand in for."""
    stem = network.fully_connected()
    if stem is None or network.late or network.normalizer is not None:
        return None
    cpu = all(parameter.device.type == "cpu" for parameter in network.parameters())
    vectors = {part.rank for _, part in network.named_sources()} == {1}
    if not cpu or not vectors or stem.activation not in ACTIVATIONS:
        return None
    return NumpyNetwork(network, tuple(network.output_shapes) if outputs is None else outputs)
