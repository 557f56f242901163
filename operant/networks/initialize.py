"""First weights of a network."""

from __future__ import annotations

from math import sqrt
from typing import cast

from torch import nn

from operant.networks.modular import ModularNetwork
from operant.networks.outputs import FreeOutput


def is_value(output: str) -> bool:
    """Whether an output estimates a return rather than steering actions."""
    return output.startswith("value")


def orthogonal(network: ModularNetwork) -> None:
    """Orthogonal weights: gain sqrt 2 inside, 1 for values, 0.01 for a nearly even policy."""
    for part in (network.sources, network.body, network.heads):
        for module in part.modules():
            if isinstance(module, nn.LSTM):
                _fill(module, 1.0)
                # Remember at first: a forget gate that starts half closed lets everything fade.
                bias = cast(nn.Parameter, module.bias_ih_l0)
                nn.init.ones_(bias[module.hidden_size : 2 * module.hidden_size])
            elif isinstance(module, nn.Linear | nn.Conv2d):
                _fill(module, sqrt(2))
    linear = [
        n for n in network.output_shapes if not isinstance(network.output_layer(n), FreeOutput)
    ]
    for name in linear:
        _fill(network.output_layer(name), 1.0 if is_value(name) else 0.01)


def _fill(layer: nn.Module, gain: float) -> None:
    for name, parameter in layer.named_parameters():
        if name.startswith("bias"):
            nn.init.zeros_(parameter)
        else:
            nn.init.orthogonal_(parameter, gain)
