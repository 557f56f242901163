"""Networks in NumPy for a few rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box

from operant.core.experience import HiddenState
from operant.networks.assemble import NetworkConfig, build_network
from operant.networks.numpy_forward import few_rows

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
    few = few_rows(network, ("action",))
    assert few is not None
    expected, _ = network(seen(rows), HiddenState(), None, ("action",))
    np.testing.assert_allclose(
        few(seen(rows))["action"], expected["action"].detach().numpy(), rtol=1e-5, atol=1e-6
    )


def test_a_row_does_not_depend_on_the_others() -> None:
    few = few_rows(network_of(), None)
    assert few is not None
    whole = few(seen(30))
    for start, stop in ((0, 1), (3, 8), (7, 19), (0, 30)):
        part = few({name: x[start:stop] for name, x in seen(30).items()})
        assert all(np.array_equal(part[name], whole[name][start:stop]) for name in OUTPUTS)


def test_weights_that_change_in_place_are_seen() -> None:
    network = network_of()
    few = few_rows(network, None)
    assert few is not None
    before = few(seen(4))["value"].copy()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(2.0)
    assert not np.allclose(before, few(seen(4))["value"])


@pytest.mark.parametrize("settings", [{"lstm": 4}, {"normalize": True}, {"activation": "gelu"}])
def test_other_networks_stay_with_torch(settings: dict[str, Any]) -> None:
    assert few_rows(network_of(**settings), ("action",)) is None


def test_outputs_of_several_towers_stay_with_torch() -> None:
    assert few_rows(network_of(separate=True), None) is None
    assert few_rows(network_of({"image": Box(0, 255, (3, 40, 40), np.uint8)}), None) is None


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float64, torch.int64])
def test_observations_are_read_as_the_network_reads_them(dtype: torch.dtype) -> None:
    network = network_of()
    few = few_rows(network, None)
    assert few is not None
    shown = {"x": torch.tensor([[0, 7, 255], [3, 100, 20], [1, 2, 3], [9, 9, 9]], dtype=dtype)}
    expected, _ = network(shown, HiddenState())
    np.testing.assert_allclose(few(shown)["value"], expected["value"].detach().numpy(), rtol=1e-4)
