"""Noisy layers against hand-worked numbers, and where networks have them."""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

import pytest
import torch
from gymnasium.spaces import Box
from torch import Tensor, nn

from operant.core.experience import HiddenState
from operant.networks.assemble import NetworkConfig, build_network
from operant.networks.ensemble import Ensemble, build_ensemble
from operant.networks.noisy import NoisyLinear
from operant.networks.split import SplitNetwork

OUTPUTS = {"q.action": (3,), "value": (1,)}
SPACES = {"x": Box(-1, 1, (4,))}


def drawn(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def built(noisy: bool = True, **settings: Any) -> Any:
    config = NetworkConfig(**({"hidden": (8,)} | settings))
    return build_network(config, SPACES, OUTPUTS, drawn(), noisy=noisy)


def noisy(network: nn.Module) -> list[NoisyLinear]:
    return [layer for layer in network.modules() if isinstance(layer, NoisyLinear)]


def given(network: Any, x: Tensor) -> Tensor:
    out = network({"x": x}, network.initial_state(len(x)))[0]["q.action"]
    assert isinstance(out, Tensor)
    return out


def test_the_noise_of_a_weight_is_the_product_of_both_sides() -> None:
    layer = NoisyLinear(2, 1)
    layer.weight.data, layer.bias.data = torch.tensor([[1.0, 2.0]]), torch.tensor([5.0])
    layer.weight_sigma.data, layer.bias_sigma.data = torch.tensor([[0.5, 3.0]]), torch.tensor([7.0])
    layer.noise_in, layer.noise_out = torch.tensor([2.0, -1.0]), torch.tensor([10.0])
    found = layer(torch.tensor([[1.0, 10.0]])).item()
    assert found == (1 + 0.5 * 20) * 1 + (2 - 3 * 10) * 10 + 5 + 7 * 10


def test_every_sigma_is_half_of_the_root_of_the_inputs_at_first() -> None:
    layer = NoisyLinear(16, 3)
    assert layer.weight_sigma.unique().tolist() == layer.bias_sigma.unique().tolist() == [0.125]
    assert float(layer.weight.detach().abs().max()) < 1 / 4


def test_noise_is_the_signed_root_of_normals() -> None:
    layer = NoisyLinear(3, 20_000)
    layer.redraw(drawn())
    normals = torch.randn(20_003, generator=drawn())
    expected = torch.where(normals > 0, normals.abs().sqrt(), -normals.abs().sqrt())
    torch.testing.assert_close(torch.cat([layer.noise_in, layer.noise_out]), expected)
    assert float((layer.noise_out**2).mean()) == pytest.approx(sqrt(2 / pi), rel=0.02)


def test_without_noise_it_is_the_layer_that_it_was_made_around() -> None:
    plain = nn.Linear(4, 3)
    layer, x = NoisyLinear.around(plain), torch.randn(5, 4)
    assert torch.equal(layer(x), plain(x))
    layer.redraw(drawn())
    assert not torch.equal(layer(x), plain(x))
    layer.still()
    assert torch.equal(layer(x), plain(x))


def test_the_gradient_of_sigma_is_that_of_the_weight_times_the_noise() -> None:
    layer = NoisyLinear(4, 3)
    layer.redraw(drawn())
    layer(torch.randn(6, 4, generator=drawn())).pow(2).sum().backward()
    slopes: Any = [p.grad for p in layer.parameters()]
    noise = layer.noise_out[:, None] * layer.noise_in
    torch.testing.assert_close(slopes[2], slopes[0] * noise)
    torch.testing.assert_close(slopes[3], slopes[1] * layer.noise_out)


@pytest.mark.parametrize(
    ("settings", "count"),
    [({}, 3), ({"lstm": 4}, 3), ({"separate": True}, 4), ({"hidden": (8, 8)}, 4)],
)
def test_every_fully_connected_layer_is_noisy(settings: dict[str, Any], count: int) -> None:
    network = built(**settings)
    assert len(noisy(network)) == count
    assert not [layer for layer in network.modules() if type(layer) is nn.Linear]
    assert isinstance(network, SplitNetwork) == ("separate" in settings)


def test_the_layer_behind_a_cnn_is_noisy_and_convolutions_are_not() -> None:
    spaces, config = {"image": Box(0, 1, (1, 10, 10))}, NetworkConfig(image="small")
    network = build_network(config, spaces, OUTPUTS, drawn(), noisy=True)
    assert [layer.in_features for layer in noisy(network)] == [16 * 8 * 8, 128, 128]


@pytest.mark.parametrize("init", ["orthogonal", "default"])
def test_the_means_are_the_weights_that_a_plain_network_has(init: str) -> None:
    plain, network, x = built(False, init=init), built(init=init), torch.randn(5, 4)
    assert torch.equal(given(network, x), given(plain, x))


def test_noise_is_not_saved_and_layers_do_not_act_in_numpy() -> None:
    network = built()
    names = {name.rpartition(".")[2] for name in network.state_dict()}
    assert names == {"weight", "bias", "weight_sigma", "bias_sigma"}
    assert network.numpy_forward(None) is None


def test_members_of_an_ensemble_have_noise_of_their_own() -> None:
    network = build_ensemble([built(), built()])
    assert isinstance(network, Ensemble)
    for layer in noisy(network):
        layer.redraw(drawn(layer.out_features))
    (found, _) = network({"x": torch.ones(2, 4)}, HiddenState())
    assert found["q.action"].shape == (2, 2, 3)
    noisy(network)[0].redraw(drawn(99))
    (other, _) = network({"x": torch.ones(2, 4)}, HiddenState())
    changed = (other["q.action"] != found["q.action"]).any(-1)
    assert changed.tolist() == [[True, False]] * 2
