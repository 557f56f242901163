"""Sources, body, heads and outputs as one network."""

import copy

import pytest
import torch
from torch import Tensor

from operant.core.errors import UsageError
from operant.core.experience import HiddenState
from operant.core.spaces import Shape
from operant.networks.image import ConvNet, SmallCNN
from operant.networks.modular import ModularNetwork
from operant.networks.recurrent import LSTM
from operant.networks.submodule import Identity1D, Identity3D, SubModule, identity
from operant.networks.vector import MLP

T, B = 6, 4
NOTHING = HiddenState()


def full() -> ModularNetwork:
    """A memory in each place where there can be one."""
    torch.manual_seed(0)
    sources = {"vector": LSTM((3,), 5), "image": SmallCNN((2, 5, 5), 8)}
    heads = {1: LSTM((6,), 7)}
    return ModularNetwork(sources, LSTM((13,), 6), {"policy": (2,), "value": ()}, heads)


def seen(*lead: int) -> dict[str, Tensor]:
    torch.manual_seed(1)
    return {
        "vector": torch.randn(*lead, 3),
        "image": torch.randint(0, 256, (*lead, 2, 5, 5), dtype=torch.uint8),
    }


def test_state_is_named_by_where_it_lives() -> None:
    state = full().initial_state(B)
    assert {name: x.shape[1] for name, x in state.items()} == {
        "source.vector.h": 5,
        "source.vector.c": 5,
        "body.h": 6,
        "body.c": 6,
        "head.1.h": 7,
        "head.1.c": 7,
    }
    assert all(x.shape[0] == B and not x.any() for x in state.values())


def test_every_memory_keeps_its_state_the_heads_too() -> None:
    net = full()
    _, one = net(seen(B), net.initial_state(B))
    _, two = net(seen(B), one)
    assert two.keys() == net.initial_state(B).keys()
    assert all((two[name] - one[name]).abs().max() > 1e-4 for name in two)


def test_a_sequence_with_resets_equals_its_steps() -> None:
    net, observation = full(), seen(T, B)
    first = torch.rand(T, B) < 0.3
    found, carried = net(observation, net.initial_state(B), first)
    state = net.initial_state(B)
    for t in range(T):
        step, state = net({n: x[t] for n, x in observation.items()}, state.reset(first[t]))
        for name, y in step.items():
            torch.testing.assert_close(found[name][t], y, atol=1e-6, rtol=0)
    for name, x in state.items():
        torch.testing.assert_close(carried[name], x, atol=1e-6, rtol=0)


def test_outputs_come_in_the_shapes_asked_for() -> None:
    net = full()
    moment, _ = net(seen(B), net.initial_state(B))
    sequence, _ = net(seen(T, B), net.initial_state(B))
    assert [tuple(moment[n].shape) for n in ("policy", "value")] == [(B, 2), (B,)]
    assert [tuple(sequence[n].shape) for n in ("policy", "value")] == [(T, B, 2), (T, B)]


def test_gradient_reaches_every_parameter() -> None:
    net = full()
    found, _ = net(seen(T, B), net.initial_state(B), torch.zeros(T, B, dtype=torch.bool))
    sum(y.square().sum() for y in found.values()).backward()
    idle = [n for n, p in net.named_parameters() if p.grad is None or not p.grad.any()]
    assert idle == []


def test_only_what_is_asked_for_is_computed() -> None:
    heads: dict[int, SubModule] = {1: LSTM((4,), 4), 3: Identity3D((4, 1, 1))}
    outputs: dict[str, Shape] = {"policy": (2,), "map": (3, 1, 1)}
    net = ModularNetwork({"x": Identity1D((4,))}, MLP((4,), (4,)), outputs, heads)
    ran: list[str] = []
    for name, layer in net.outputs.items():
        layer.register_forward_hook(lambda *_, name=name: ran.append(name))
    state = HiddenState({name: x + 1 for name, x in net.initial_state(B).items()})
    found, carried = net({"x": torch.rand(B, 4)}, state, None, ("map",))
    assert ran == list(found) == ["map"]
    assert torch.equal(carried["head.1.h"], state["head.1.h"])


def test_an_unknown_output_is_refused_with_the_nearest_name() -> None:
    net = full()
    with pytest.raises(UsageError, match="'polcy' is unknown; did you mean 'policy'"):
        net(seen(B), net.initial_state(B), None, ("polcy",))


@pytest.mark.parametrize(
    ("body", "output"),
    [((6,), (3,)), ((6, 5), (3, 5)), ((6, 4, 3), (3, 4, 3)), ((6, 2, 4, 3), (3, 2, 4, 3))],
)
def test_an_output_layer_maps_features_alike_at_every_position(body: Shape, output: Shape) -> None:
    net = ModularNetwork({"x": identity(body)}, identity(body), {"y": output})
    x = torch.randn(B, *body)
    weight = net.outputs["y"].get_parameter("weight").flatten(1)
    bias = net.outputs["y"].get_parameter("bias")
    expected = torch.einsum("of,bf...->bo...", weight, x) + bias.view(-1, *(1,) * (len(body) - 1))
    torch.testing.assert_close(net({"x": x}, NOTHING)[0]["y"], expected)


def test_sources_of_size_one_are_spread_over_the_bodys_positions() -> None:
    sources = {"image": Identity3D((2, 5, 4)), "vector": Identity1D((3,))}
    net = ModularNetwork(sources, Identity3D((5, 5, 4)), {"map": (1, 5, 4)})
    torch.nn.init.ones_(net.outputs["map"].get_parameter("weight"))
    torch.nn.init.zeros_(net.outputs["map"].get_parameter("bias"))
    image, vector = torch.randn(B, 2, 5, 4), torch.randn(B, 3)
    expected = image.sum(1, keepdim=True) + vector.sum(1).view(B, 1, 1, 1)
    torch.testing.assert_close(net({"image": image, "vector": vector}, NOTHING)[0]["map"], expected)


def test_a_lone_source_of_size_one_is_spread_too() -> None:
    net = ModularNetwork({"v": Identity1D((3,))}, ConvNet((3, 5, 5), ((2, 3, 1),), 4), {"y": (1,)})
    assert tuple(net({"v": torch.randn(B, 3)}, NOTHING)[0]["y"].shape) == (B, 1)


def test_a_head_that_does_not_fit_the_body_is_refused() -> None:
    with pytest.raises(UsageError, match=r"body gives \(8,\).*head of rank 1 takes \(9,\)"):
        ModularNetwork({"x": Identity1D((4,))}, MLP((4,), (8,)), {"y": (1,)}, {1: LSTM((9,), 3)})


def test_a_head_that_no_output_uses_is_refused() -> None:
    heads = {3: Identity3D((8, 1, 1))}
    with pytest.raises(UsageError, match=r"heads of ranks \[1, 3\]"):
        ModularNetwork({"x": Identity1D((4,))}, MLP((4,), (8,)), {"y": (1,)}, heads)


def test_an_output_with_positions_that_its_head_lacks_is_refused() -> None:
    with pytest.raises(UsageError, match=r"'y' has the shape \(2, 5, 5\).*gives \(8, 1, 1\)"):
        ModularNetwork({"x": Identity1D((4,))}, MLP((4,), (8,)), {"y": (2, 5, 5)})


def test_a_missing_observation_and_one_of_the_wrong_rank_are_named() -> None:
    net = full()
    with pytest.raises(UsageError, match=r"\['image'\]: expected vector"):
        net({"image": seen(B)["image"]}, net.initial_state(B))
    with pytest.raises(UsageError, match=r"'vector' has the shape \(3,\)"):
        net(seen(B) | {"vector": torch.rand(3)}, net.initial_state(B))


def test_a_missing_state_is_named() -> None:
    with pytest.raises(UsageError, match=r"nothing for 'source.vector'.*initial_state"):
        full()(seen(B), NOTHING)


def test_a_copy_has_weights_of_its_own() -> None:
    net = full()
    target = copy.deepcopy(net)
    before, _ = target(seen(B), net.initial_state(B))
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(1.0)
    after, _ = target(seen(B), net.initial_state(B))
    assert torch.equal(before["policy"], after["policy"])
    assert not torch.equal(net(seen(B), net.initial_state(B))[0]["policy"], after["policy"])


def test_observations_without_a_source_are_not_looked_at() -> None:
    net = ModularNetwork({"x": Identity1D((4,))}, MLP((4,), (8,)), {"y": (2,)})
    x = torch.rand(B, 4)
    masked, state = net({"x": x, "action_mask": torch.ones(B, 2)}, NOTHING)
    assert torch.equal(masked["y"], net({"x": x}, NOTHING)[0]["y"])
    assert state == {}
