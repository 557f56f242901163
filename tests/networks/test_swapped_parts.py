"""A part or parameter that takes another's place is used at once, by every kind of network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from gymnasium.spaces import Box
from torch import Tensor, nn
from torch.func import functional_call

from operant.core.experience import HiddenState
from operant.networks.assemble import NetworkConfig, build_network
from operant.networks.ensemble import build_ensemble
from operant.networks.vector import MLP

INPUTS = {"x": Box(-1, 1, (3,))}
OUTPUTS = {"policy.action": (4,), "value": (1,)}
SEEN = {"x": torch.linspace(-1, 1, 12).reshape(4, 3)}


def network_of(**settings: Any) -> Any:
    config = NetworkConfig(**{"hidden": (8,), **settings})
    return build_network(config, INPUTS, OUTPUTS, torch.Generator().manual_seed(1))


KINDS: dict[str, Callable[[], Any]] = {
    "modular": network_of,
    "separate": lambda: network_of(separate=True),
    "recurrent": lambda: network_of(lstm=5),
    "stacked": lambda: build_ensemble([network_of(), network_of()]),
    "ensemble": lambda: build_ensemble([network_of(lstm=5), network_of(lstm=5)]),
}


def outputs(network: Any) -> Tensor:
    out, _ = network(SEEN, network.initial_state(4))
    return torch.cat([x.detach().flatten() for x in out.values()])


@pytest.mark.parametrize("kind", KINDS)
def test_functional_call_computes_with_the_weights_it_is_given(kind: str) -> None:
    network, other = KINDS[kind](), KINDS[kind]()
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(0.5)
    given = dict(other.named_parameters())
    out, _ = functional_call(network, given, (SEEN, network.initial_state(4)))
    assert torch.equal(torch.cat([x.flatten() for x in out.values()]), outputs(other))
    assert not torch.equal(outputs(network), outputs(other))


@pytest.mark.parametrize("kind", KINDS)
def test_every_parameter_that_is_replaced_counts(kind: str) -> None:
    network = KINDS[kind]()
    before = outputs(network)
    for path, parameter in list(network.named_parameters()):
        owner, _, name = path.rpartition(".")
        setattr(network.get_submodule(owner), name, nn.Parameter(parameter.detach() + 0.5))
    assert not torch.equal(outputs(network), before)
    expected = KINDS[kind]()
    with torch.no_grad():
        for parameter in expected.parameters():
            parameter.add_(0.5)
    assert torch.equal(outputs(network), outputs(expected))


def test_a_swapped_body_or_source_or_output_is_used() -> None:
    for name, part in (("body", MLP((3,), (8,))), ("outputs", network_of().outputs)):
        network = network_of()
        before = outputs(network)
        with torch.no_grad():
            for parameter in part.parameters():
                parameter.fill_(0.1)
        setattr(network, name, part)
        assert not torch.equal(outputs(network), before)


class Halved(nn.Linear):
    """A layer with a forward of its own."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) / 2


def test_a_layer_of_ones_own_inside_an_mlp_is_called() -> None:
    part = MLP((3,), (8,), "relu")
    plain, _ = part(SEEN["x"], HiddenState())
    mine = Halved(3, 8)
    mine.load_state_dict(part.layers[0].state_dict())
    part.layers[0] = mine
    torch.testing.assert_close(part(SEEN["x"], HiddenState())[0], plain / 2)
