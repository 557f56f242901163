"""Several networks with the same outputs as one, such as the twin critics of SAC.

Every output has one more axis in front of its last: the members, `[..., members, n]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

import torch
from torch import Tensor, nn

from operant.core.errors import UsageError
from operant.core.experience import HiddenState, Tensors
from operant.core.protocols import Network, NumpyForward
from operant.core.spaces import Shape
from operant.networks.modular import ModularNetwork
from operant.networks.outputs import check_known
from operant.networks.submodule import identity, key, module_dict, under, within
from operant.networks.vector import ACTIVATIONS, MLP


def build_ensemble(networks: Sequence[Network]) -> Ensemble | Stacked:
    """The networks as one; fully connected ones of equal sizes as one batched product.

    Such ones give their weights away: what is learned is the whole's, not theirs.
    """
    plain = [n for n in networks if isinstance(n, ModularNetwork) and n.fully_connected()]
    if plain and len(plain) == len(networks) and len({_sizes(n) for n in plain}) == 1:
        return Stacked(plain)
    return Ensemble(networks)


class _ActsInTorch:
    """Ensembles are critics: they do not act, and have no faster form for it."""

    def numpy_forward(self, outputs: tuple[str, ...] | None) -> NumpyForward | None:
        """None."""
        return None


class Ensemble(_ActsInTorch, nn.Module):
    """Networks of any kind, one after another. State is named by the member's number first."""

    joint = True

    def __init__(self, networks: Sequence[Network]) -> None:
        super().__init__()
        modules = [network for network in networks if isinstance(network, nn.Module)]
        if len(modules) < len(networks) or not modules:
            raise UsageError(f"an ensemble of {networks}: expected at least one, all nn.Modules")
        self.networks = nn.ModuleList(modules)
        self.recurrent = any(network.recurrent for network in networks)

    def members(self) -> list[Network]:
        """The networks."""
        return [cast(Network, network) for network in self.networks]

    def forward(
        self,
        observation: Tensors,
        hidden_state: HiddenState,
        first: Tensor | None = None,
        outputs: tuple[str, ...] | None = None,
    ) -> tuple[Tensors, HiddenState]:
        """The wanted outputs of every member and the state carried out."""
        results: list[Tensors] = []
        carried = HiddenState()
        for i, network in enumerate(self.members()):
            own = HiddenState(within(hidden_state, str(i)))
            found, new = network(observation, own, first, outputs)
            results.append(found)
            carried.update(under(str(i), new))
        return {n: torch.stack([out[n] for out in results], -2) for n in results[0]}, carried

    def initial_state(self, batch_size: int) -> HiddenState:
        """A fresh state for `batch_size` rows."""
        fresh = HiddenState()
        for i, network in enumerate(self.members()):
            fresh.update(under(str(i), network.initial_state(batch_size)))
        return fresh

    def observe(self, observation: Tensors, valid: Tensor | None = None) -> None:
        """Let each member's normaliser take in the rows where `valid` is true."""
        for network in self.members():
            network.observe(observation, valid)


class Stacked(_ActsInTorch, nn.Module):
    """Fully connected networks of equal sizes: each layer of all of them is one product.

    The arithmetic is the same, in half as many calls for two.
    """

    joint, recurrent = True, False

    def __init__(self, networks: Sequence[ModularNetwork]) -> None:
        super().__init__()
        first = networks[0]
        self.members, self.output_shapes = len(networks), first.output_shapes
        sources = dict(first.named_sources())
        joined = (sum(source.output_shape(1)[0] for source in sources.values()),)
        late: dict[str, Shape] = {name: (size,) for name, size in first.late.items()}
        self.reader = ModularNetwork(sources, identity(joined), {}, None, first.normalizer, late)
        stems = [_stem(network) for network in networks]
        self.activation = stems[0].activation
        self.layers = nn.ModuleList(
            [StackedLinear(layers) for layers in zip(*(s.layers for s in stems), strict=True)]
        )
        self.outputs = module_dict(
            {
                name: StackedLinear(network.output_layer(name) for network in networks)
                for name in first.output_shapes
            }
        )

    def forward(
        self,
        observation: Tensors,
        hidden_state: HiddenState,
        first: Tensor | None = None,
        outputs: tuple[str, ...] | None = None,
    ) -> tuple[Tensors, HiddenState]:
        """The wanted outputs of every member; there is no state."""
        if outputs is not None:
            check_known(outputs, self.output_shapes)
        x, times = self.reader.read(observation, hidden_state, first, HiddenState())
        if self.reader.late:
            x = self.reader.join(x, observation)
        x, activate = x.expand(self.members, *x.shape), ACTIVATIONS[self.activation]
        for layer in self.layers:
            x = activate(layer(x))
        results: Tensors = {}
        for name in self.output_shapes if outputs is None else outputs:
            y = self.outputs[key(name)](x).transpose(0, 1)
            results[name] = y.reshape(*times, *y.shape[1:]) if times else y
        return results, HiddenState()

    def initial_state(self, batch_size: int) -> HiddenState:
        """Nothing."""
        return HiddenState()

    def observe(self, observation: Tensors, valid: Tensor | None = None) -> None:
        """Let the normaliser, if there is one, take in the rows where `valid` is true."""
        self.reader.observe(observation, valid)


class StackedLinear(nn.Module):
    """Linear layers of equal sizes side by side: `[members, N, in]` to `[members, N, out]`."""

    def __init__(self, layers: Iterable[nn.Module]) -> None:
        super().__init__()
        linear = [layer for layer in layers if isinstance(layer, nn.Linear)]
        self.weight = nn.Parameter(torch.stack([layer.weight.detach().T for layer in linear]))
        self.bias = nn.Parameter(torch.stack([layer.bias.detach() for layer in linear])[:, None])
        self.single = self.bias.shape[-1] == 1

    def forward(self, x: Tensor) -> Tensor:
        if self.single:  # a batched product of a matrix and a vector takes five times as long
            return (x * self.weight.mT).sum(-1, keepdim=True) + self.bias
        return torch.baddbmm(self.bias, x, self.weight)


def _sizes(network: ModularNetwork) -> tuple[object, ...]:
    """What must be equal for networks to be stacked."""
    stem = _stem(network)
    reads = (tuple(network.source_keys), tuple(network.late.items()), stem.input_shape)
    return *reads, stem.sizes, stem.activation, tuple(network.output_shapes.items())


def _stem(network: ModularNetwork) -> MLP:
    stem = network.fully_connected()
    assert stem is not None, "only fully connected networks are stacked"
    return stem
