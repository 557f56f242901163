"""Plain networks for the few rows that acting has: in NumPy, a call of which costs far less.

A call of torch on a handful of rows takes about five times as long as one of NumPy, which sees the
same bytes, so that there is nothing to copy when the weights change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from torch import Tensor, nn

from operant.core.experience import Arrays, Tensors
from operant.core.protocols import Network
from operant.core.tree import Array
from operant.networks.ensemble import is_plain, stem_of
from operant.networks.modular import ModularNetwork
from operant.networks.split import Towers
from operant.networks.submodule import key

BLOCK = 8  # rows multiplied at a time: in larger products a row's rounding depends on the others
ROWS = 4  # and in products, also those of torch, of no multiple of so many
ACTIVATIONS: dict[str, Callable[..., Any]] = {
    "tanh": lambda x: np.tanh(x, out=x),
    "relu": lambda x: np.maximum(x, 0.0, out=x),
}


class FewRows:
    """Fully connected layers from observations `[B, F]` to outputs by name, without a gradient."""

    def __init__(self, network: ModularNetwork, outputs: tuple[str, ...]) -> None:
        stem = stem_of(network)
        self.sources = {k: network.parts[path] for k, path in network.source_paths.items()}
        self.activate = ACTIVATIONS[stem.activation]
        self.layers = [_arrays(layer) for layer in stem.layers]
        self.outputs = {name: _arrays(network.outputs[key(name)]) for name in outputs}

    def __call__(self, observation: Tensors) -> Arrays:
        """The outputs `[B, n]`; a row's do not depend on the others."""
        parts = [s.floats(observation[name]).cpu().numpy() for name, s in self.sources.items()]
        x = parts[0] if len(parts) == 1 else np.concatenate(parts, 1)
        count = len(x)
        if count % ROWS:
            x = x[np.arange(-(-count // ROWS) * ROWS) % count]
        x = x.reshape(-1, ROWS if len(x) % BLOCK else BLOCK, x.shape[1])
        for weight, bias in self.layers:
            x = np.matmul(x, weight)
            x += bias
            self.activate(x)
        return {
            name: (np.matmul(x, weight) + bias).reshape(-1, len(bias))[:count]
            for name, (weight, bias) in self.outputs.items()
        }


def few_rows(network: Network, outputs: tuple[str, ...] | None) -> FewRows | None:
    """The network for a few rows, if it is one that NumPy can stand in for."""
    if isinstance(network, Towers):
        towers = network.behind(outputs)
        if len(towers) != 1:
            return None
        _, network, outputs = towers[0]
    if not isinstance(network, ModularNetwork) or not is_plain(network) or network.late:
        return None
    cpu = all(parameter.device.type == "cpu" for parameter in network.parameters())
    ranks = {network.parts[path].rank for path in network.source_paths.values()}
    known = stem_of(network).activation in ACTIVATIONS and network.normalizer is None
    if not cpu or not known or ranks != {1}:
        return None
    return FewRows(network, tuple(network.output_shapes) if outputs is None else outputs)


def _arrays(layer: Tensor | nn.Module) -> tuple[Array, Array]:
    assert isinstance(layer, nn.Linear)
    return layer.weight.detach().numpy().T, layer.bias.detach().numpy()
