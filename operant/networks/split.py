"""Separate networks side by side as one, such as a policy and a value that share nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from torch import Tensor, nn

from operant.core.errors import UsageError, suggest
from operant.core.experience import HiddenState, Tensors
from operant.core.protocols import Network, NumpyForward
from operant.networks.outputs import check_known
from operant.networks.submodule import key, module_dict, under, within


class SplitNetwork(nn.Module):
    """Networks side by side as one; `owners` says which of them gives each output.

    Only the networks behind the wanted outputs run; the state of the others stays as it was. State
    is named by its network first.
    """

    joint = False  # each network is paid for by itself

    def __init__(self, networks: Mapping[str, Network], owners: Mapping[str, str]) -> None:
        super().__init__()
        for output, owner in owners.items():
            if owner not in networks:
                known = suggest(owner, networks)
                raise UsageError(f"output {output!r}: network {owner!r} is unknown{known}")
        self.networks = module_dict({name: _module(name, net) for name, net in networks.items()})
        self.owners = dict(owners)
        self.recurrent = any(network.recurrent for network in networks.values())
        self._asked: dict[tuple[str, ...] | None, dict[str, tuple[str, ...]]] = {}
        # What learning asks for, all or what one network gives: known before anything is compiled.
        self.behind(None)
        for network in networks:
            self.behind(tuple(name for name, owner in owners.items() if owner == network))

    def forward(
        self,
        observation: Tensors,
        hidden_state: HiddenState,
        first: Tensor | None = None,
        outputs: tuple[str, ...] | None = None,
    ) -> tuple[Tensors, HiddenState]:
        """The wanted outputs and the state carried out."""
        carried = HiddenState(hidden_state)
        results: Tensors = {}
        for name, asked in self.behind(outputs).items():
            own = HiddenState(within(hidden_state, name))
            found, new = self.networks[name](observation, own, first, asked)
            results.update(found)
            carried.update(under(name, new))
        return results, carried

    def behind(self, outputs: tuple[str, ...] | None) -> dict[str, tuple[str, ...]]:
        """The networks behind some outputs, each with those that it gives."""
        if outputs not in self._asked:
            wanted = tuple(self.owners) if outputs is None else outputs
            check_known(wanted, self.owners)
            given: dict[str, list[str]] = {}
            for owner in dict.fromkeys(self.owners.values()):
                given[key(owner)] = [name for name in wanted if self.owners[name] == owner]
            self._asked[outputs] = {name: tuple(asked) for name, asked in given.items() if asked}
        return self._asked[outputs]

    def initial_state(self, batch_size: int) -> HiddenState:
        """A fresh state for `batch_size` rows."""
        fresh = HiddenState()
        for name, network in self.named_networks():
            fresh.update(under(name, network.initial_state(batch_size)))
        return fresh

    def observe(self, observation: Tensors, valid: Tensor | None = None) -> None:
        """Let each network's normaliser take in the rows where `valid` is true."""
        for _, network in self.named_networks():
            network.observe(observation, valid)

    def numpy_forward(self, outputs: tuple[str, ...] | None) -> NumpyForward | None:
        """That of the network behind these outputs, if there is only one."""
        behind = self.behind(outputs)
        if len(behind) != 1:
            return None
        ((name, asked),) = behind.items()
        return dict(self.named_networks())[name].numpy_forward(asked)

    def named_networks(self) -> list[tuple[str, Network]]:
        """The networks, by what their state is named after."""
        return [(name, cast(Network, network)) for name, network in self.networks.items()]


def _module(name: str, network: Network) -> nn.Module:
    if not isinstance(network, nn.Module):
        raise UsageError(f"network {name!r} is a {type(network).__name__}; expected an nn.Module")
    return network
