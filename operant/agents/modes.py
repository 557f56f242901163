"""Training and eval mode of modules such as dropout and batch norm, and noise in weights.

Networks are in eval mode, so that acting and evaluation give what the network means and move no
statistics, and in training mode during a gradient step. Only modules that depend on the mode are
switched, which are found once: most networks have none.
"""

from __future__ import annotations

from collections.abc import Iterable

from torch import nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.dropout import _DropoutNd

from operant.core.protocols import NoisyLayer

Modules = tuple[nn.Module, ...]
DEPENDENT = (
    *(_DropoutNd, _NormBase, nn.RReLU, nn.MultiheadAttention),
    *(nn.TransformerEncoder, nn.TransformerEncoderLayer),
)
# Modules defined elsewhere may read `self.training`, as spectral norm's do.
KNOWN = ("torch.nn.modules.", "operant.")


def mode_dependent(network: object) -> Modules:
    """Modules that may act otherwise in training mode; those already in eval mode stay there."""
    found = network.modules() if isinstance(network, nn.Module) else ()
    return tuple(module for module in found if module.training and _depends(module))


def in_eval_mode(network: object) -> Modules:
    """Put a network in eval mode; what a gradient step has to switch back."""
    modules = mode_dependent(network)
    set_training(modules, False)
    return modules


def noisy_layers(network: object) -> tuple[NoisyLayer, ...]:
    """Layers with noise in their weights."""
    found = network.modules() if isinstance(network, nn.Module) else ()
    return tuple(module for module in found if isinstance(module, NoisyLayer))


def set_training(modules: Iterable[nn.Module], training: bool) -> None:
    """Switch these modules, and none within them."""
    for module in modules:
        module.training = training


def _depends(module: nn.Module) -> bool:
    if isinstance(module, nn.RNNBase):
        return module.dropout > 0
    known = type(module).__module__.startswith(KNOWN) and not module._forward_pre_hooks
    return not known or isinstance(module, DEPENDENT)
