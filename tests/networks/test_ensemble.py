"""Several networks as one: alone, one after another, or as one batched product."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
import torch
from gymnasium.spaces import Box
from torch import Tensor

from operant.core.experience import HiddenState
from operant.networks.assemble import NetworkConfig, build_network
from operant.networks.ensemble import Ensemble, Stacked, build_ensemble

INPUTS = {"x": Box(-1, 1, (3,)), "y": Box(-1, 1, (2,))}
OUTPUTS = {"value": (1,), "choice": (4,)}


def pair(late: bool = False, **settings: Any) -> list[Any]:
    """Two networks of the same kind; their biases, which begin at zero, are drawn as well."""
    config = NetworkConfig(hidden=(8, 6), **settings)
    inputs = {"x": INPUTS["x"]} if late else INPUTS
    joins = {"y": INPUTS["y"]} if late else None
    generator = torch.Generator().manual_seed(3)
    made = [build_network(config, inputs, OUTPUTS, generator, joins) for _ in range(2)]
    with torch.no_grad():
        for parameter in (p for network in made for p in network.parameters() if p.dim() == 1):
            parameter.uniform_(-1, 1, generator=generator)
    return made


def seen(*lead: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(4)
    return {k: torch.rand(*lead, *s.shape, generator=generator) for k, s in INPUTS.items()}


def slope(parameter: Any) -> Any:
    """The gradient of a parameter."""
    return parameter.grad


@pytest.mark.parametrize("lead", [(5,), (2, 5)])
@pytest.mark.parametrize("normalize", [False, True])
def test_a_batched_product_gives_what_the_networks_give(
    lead: tuple[int, ...], normalize: bool
) -> None:
    networks = pair(late=True, normalize=normalize)
    together = build_ensemble(deepcopy(networks))
    assert isinstance(together, Stacked)
    first = None if len(lead) == 1 else torch.zeros(lead, dtype=torch.bool)
    out, _ = together(seen(*lead), HiddenState(), first)
    for i, network in enumerate(networks):
        expected, _ = network(seen(*lead), HiddenState(), first)
        for name, x in expected.items():
            torch.testing.assert_close(out[name][..., i, :], x)


def test_gradients_of_a_batched_product_are_those_of_the_networks() -> None:
    networks = pair(late=True)
    together = build_ensemble(deepcopy(networks))
    assert isinstance(together, Stacked)
    together(seen(5), HiddenState())[0]["value"].square().sum().backward()
    for i, network in enumerate(networks):
        network(seen(5), HiddenState())[0]["value"].square().sum().backward()
        for layer, stacked in zip(network.heads["1"].layers, together.layers, strict=True):
            torch.testing.assert_close(slope(stacked.weight)[i], slope(layer.weight).T)
            torch.testing.assert_close(slope(stacked.bias)[i, 0], slope(layer.bias))
        layer, stacked = network.outputs["value"], together.outputs["value"]
        torch.testing.assert_close(slope(stacked.weight)[i], slope(layer.weight).T)
        torch.testing.assert_close(slope(stacked.bias)[i, 0], slope(layer.bias))


@pytest.mark.parametrize("settings", [{"lstm": 4}, {"separate": True}])
def test_networks_of_other_kinds_answer_one_after_another(settings: dict[str, Any]) -> None:
    networks = pair(**settings)
    together = build_ensemble(networks)
    assert isinstance(together, Ensemble)
    out, state = together(seen(5), together.initial_state(5))
    alone, own = networks[1](seen(5), networks[1].initial_state(5))
    assert torch.equal(out["choice"][..., 1, :], alone["choice"])
    assert all(torch.equal(state[f"1.{name}"], x) for name, x in own.items())


def test_networks_of_other_sizes_are_not_one_product() -> None:
    config = NetworkConfig(hidden=(8, 7))
    other = build_network(config, {"x": INPUTS["x"]}, OUTPUTS, None, {"y": INPUTS["y"]})
    assert isinstance(build_ensemble([pair(late=True)[0], other]), Ensemble)


def test_only_the_outputs_asked_for_come_back() -> None:
    for together in (build_ensemble(pair(late=True)), build_ensemble(pair(lstm=4))):
        out, _ = together(seen(5), together.initial_state(5), None, ("choice",))
        assert list(out) == ["choice"]
        assert out["choice"].shape == (5, 2, 4)
