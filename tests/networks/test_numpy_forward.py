"""Networks in NumPy for a few rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box
from torch import nn

from operant.core.experience import HiddenState
from operant.networks.assemble import NetworkConfig, build_network
from operant.networks.vector import MLP

INPUTS = {"x": Box(-1, 1, (3,)), "y": Box(-1, 1, (2,))}
OUTPUTS = {"action": (4,), "value": (1,)}


def network_of(inputs: Any = None, **settings: Any) -> Any:
    config = NetworkConfig(**{"hidden": (16, 8), **settings})
    return build_network(config, inputs or {"x": INPUTS["x"]}, OUTPUTS, torch.Generator())


def seen(rows: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(4)
    return {k: torch.rand(rows, *s.shape, generator=generator) for k, s in INPUTS.items()}


@pytest.mark.parametrize("rows", [1, 3, 8, 12, 21])
@pytest.mark.parametrize("settings", [{}, {"activation": "relu"}, {"separate": True}])
def test_outputs_are_those_of_the_network(rows: int, settings: dict[str, Any]) -> None:
    network = network_of(**settings)
    forward = network.numpy_forward(("action",))
    assert forward is not None
    expected, _ = network(seen(rows), HiddenState(), None, ("action",))
    np.testing.assert_allclose(
        forward(seen(rows))["action"], expected["action"].detach().numpy(), rtol=1e-5, atol=1e-6
    )


def test_a_row_does_not_depend_on_the_others() -> None:
    forward = network_of().numpy_forward(None)
    assert forward is not None
    whole = forward(seen(30))
    for start, stop in ((0, 1), (3, 8), (7, 19), (0, 30)):
        part = forward({name: x[start:stop] for name, x in seen(30).items()})
        assert all(np.array_equal(part[name], whole[name][start:stop]) for name in OUTPUTS)


def test_weights_that_change_in_place_are_seen() -> None:
    network = network_of()
    forward = network.numpy_forward(None)
    assert forward is not None
    before = forward(seen(4))["value"].copy()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(2.0)
    assert not np.allclose(before, forward(seen(4))["value"])


@pytest.mark.parametrize("settings", [{"lstm": 4}, {"normalize": True}, {"activation": "gelu"}])
def test_other_networks_stay_with_torch(settings: dict[str, Any]) -> None:
    assert network_of(**settings).numpy_forward(("action",)) is None


def test_outputs_of_several_networks_stay_with_torch() -> None:
    assert network_of(separate=True).numpy_forward(None) is None
    assert network_of({"image": Box(0, 255, (3, 40, 40), np.uint8)}).numpy_forward(None) is None


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float64, torch.int64])
def test_observations_are_read_as_the_network_reads_them(dtype: torch.dtype) -> None:
    network = network_of()
    forward = network.numpy_forward(None)
    assert forward is not None
    shown = {"x": torch.tensor([[0, 7, 255], [3, 100, 20], [1, 2, 3], [9, 9, 9]], dtype=dtype)}
    expected, _ = network(shown, HiddenState())
    np.testing.assert_allclose(
        forward(shown)["value"], expected["value"].detach().numpy(), rtol=1e-4
    )


def doubled(layer: nn.Linear) -> nn.Linear:
    """Another layer, of twice the weights."""
    other = nn.Linear(layer.in_features, layer.out_features)
    other.load_state_dict({name: 2 * x for name, x in layer.state_dict().items()})
    return other


def swap_layer(network: Any) -> None:
    network.body.layers[0] = doubled(network.body.layers[0])


def swap_output(network: Any) -> None:
    network.outputs["value"] = doubled(network.outputs["value"])


def swap_body(network: Any) -> None:
    network.body = MLP((3,), (16, 8))


def swap_parameter(network: Any) -> None:
    layer = network.body.layers[0]
    layer.weight = nn.Parameter(2 * layer.weight.detach())


def swap_data(network: Any) -> None:
    weight = network.body.layers[0].weight
    weight.data = 2 * weight.data


@pytest.mark.parametrize("swap", [swap_layer, swap_output, swap_body, swap_parameter, swap_data])
def test_whoever_keeps_it_is_told_when_a_part_was_swapped(swap: Callable[[Any], None]) -> None:
    network = network_of()
    forward = network.numpy_forward(None)
    assert forward.current()
    swap(network)
    assert not forward.current()
    again, (expected, _) = network.numpy_forward(None), network(seen(4), HiddenState())
    np.testing.assert_allclose(again(seen(4))["value"], expected["value"].detach(), rtol=1e-5)


def test_a_layer_of_another_kind_stays_with_torch() -> None:
    class Other(nn.Linear):
        pass

    network = network_of()
    network.body.layers[0] = Other(3, 16)
    assert network.numpy_forward(None) is None


def test_an_output_that_does_not_depend_on_what_is_seen_is_a_parameter() -> None:
    outputs = {"policy.push": (2,), "log_std.push": (2,), "value": (1,)}
    network: Any = build_network(NetworkConfig(hidden=(8,)), {"x": INPUTS["x"]}, outputs)
    free = network.outputs["log_std/push"].value
    assert free.tolist() == [0.0, 0.0]
    with torch.no_grad():
        free.copy_(torch.tensor([0.5, -1.0]))
    out, _ = network(seen(5), HiddenState())
    assert out["log_std.push"].tolist() == [[0.5, -1.0]] * 5
    assert network.numpy_forward(None)(seen(5))["log_std.push"].tolist() == [[0.5, -1.0]] * 5
    out["log_std.push"].sum().backward()
    assert free.grad.tolist() == [5.0, 5.0]
