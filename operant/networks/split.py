"""Several networks side by side as one, such as a policy and a value that share nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from operant.core.errors import UsageError, suggest
from operant.core.experience import HiddenState, Tensors
from operant.core.protocols import Network
from operant.networks.outputs import check_known
from operant.networks.submodule import key, module_dict, under, within


class Towers(nn.Module):
    """Networks side by side as one; `owners` says which of them gives each output.

    Only the towers behind the wanted outputs run; the state of the others stays as it was. State
    is named by its tower first.
    """

    joint = False  # each tower is paid for by itself

    def __init__(self, networks: Mapping[str, Network], owners: Mapping[str, str]) -> None:
        super().__init__()
        for output, tower in owners.items():
            if tower not in networks:
                known = suggest(tower, networks)
                raise UsageError(f"output {output!r}: tower {tower!r} is unknown{known}")
        self.networks = module_dict({n: _module(n, network) for n, network in networks.items()})
        self.owners = dict(owners)
        self._networks = dict(networks)
        self.recurrent = any(network.recurrent for network in self._networks.values())
        self._asked: dict[Any, list[tuple[str, Network, tuple[str, ...]]]] = {}  # by the outputs
        self.behind(None)  # what learning asks for: known before anything is compiled

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
        for tower, network, asked in self.behind(outputs):
            own = HiddenState(within(hidden_state, tower))
            found, new = network(observation, own, first, asked)
            results.update(found)
            carried.update(under(tower, new))
        return results, carried

    def behind(self, outputs: tuple[str, ...] | None) -> list[tuple[str, Network, tuple[str, ...]]]:
        """The towers behind some outputs, each with those that it gives."""
        if outputs not in self._asked:
            wanted = tuple(self.owners) if outputs is None else outputs
            check_known(wanted, self.owners)
            asked = {
                tower: tuple(name for name in wanted if self.owners[name] == tower)
                for tower in self._networks
            }
            found = self._networks.items()
            self._asked[outputs] = [(key(k), net, asked[k]) for k, net in found if asked[k]]
        return self._asked[outputs]

    def initial_state(self, batch_size: int) -> HiddenState:
        """A fresh state for `batch_size` rows."""
        fresh = HiddenState()
        for tower, network in self._networks.items():
            fresh.update(under(key(tower), network.initial_state(batch_size)))
        return fresh

    def observe(self, observation: Tensors, valid: Tensor | None = None) -> None:
        """Let each tower's normaliser take in the rows where `valid` is true."""
        for network in self._networks.values():
            observe = getattr(network, "observe", None)
            if observe is not None:
                observe(observation, valid)


def _module(tower: str, network: Network) -> nn.Module:
    if not isinstance(network, nn.Module):
        raise UsageError(f"tower {tower!r} is a {type(network).__name__}; expected an nn.Module")
    return network
