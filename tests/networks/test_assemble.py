"""Networks made from settings: their parts, first weights and observations of every kind."""

import numpy as np
import pytest
import torch
from gymnasium import spaces as gs
from torch import Tensor

from operant.core.errors import UsageError
from operant.core.experience import HiddenState
from operant.core.spaces import Shape, Space
from operant.networks.assemble import NetworkConfig, build_network
from operant.networks.image import NatureCNN, SmallCNN
from operant.networks.modular import ModularNetwork
from operant.networks.split import SplitNetwork
from operant.networks.submodule import Identity1D
from operant.networks.vector import MLP

T, B = 3, 2
VECTOR = gs.Box(-1, 1, (4,))
IMAGE = gs.Box(0, 255, (3, 12, 12), np.uint8)
OUTPUTS: dict[str, Shape] = {"policy": (5,), "value": ()}
SEEN: dict[str, dict[str, Space]] = {
    "vector": {"observation": VECTOR},
    "image": {"observation": IMAGE},
    "large image": {"observation": gs.Box(0, 255, (1, 36, 36), np.uint8)},
    "both": {"image": IMAGE, "inner.vector": VECTOR},
    "number": {"observation": gs.Box(-1, 1, ())},
    "odd ranks": {"a": gs.Box(-1, 1, (2, 3)), "b": gs.Box(-1, 1, (2, 2, 2, 2)), "keys": VECTOR},
    "choices": {"observation": gs.MultiDiscrete([2, 3])},
    "strip": {"observation": gs.Box(-1, 1, (2, 1, 9))},
}


def sample(spaces: dict[str, Space], *lead: int) -> dict[str, Tensor]:
    torch.manual_seed(1)
    shapes = {n: (5,) if isinstance(s, gs.MultiDiscrete) else s.shape for n, s in spaces.items()}
    return {
        n: torch.randint(0, 256, (*lead, *(shapes[n] or ())), dtype=torch.uint8)
        if s.dtype == np.uint8
        else torch.randn(*lead, *(shapes[n] or ()))
        for n, s in spaces.items()
    }


def seeded(config: NetworkConfig, spaces: dict[str, Space], seed: int = 0) -> ModularNetwork:
    generator = torch.Generator().manual_seed(seed)
    network = build_network(config, spaces, OUTPUTS, generator)
    assert isinstance(network, ModularNetwork)
    return network


@pytest.mark.parametrize("lstm", [0, 6])
@pytest.mark.parametrize("kind", SEEN)
def test_gradient_reaches_every_parameter(kind: str, lstm: int) -> None:
    config = NetworkConfig(lstm=lstm, init="default", image_size=16)
    net = seeded(config, SEEN[kind])
    first = torch.zeros(T, B, dtype=torch.bool)
    found, state = net(sample(SEEN[kind], T, B), net.initial_state(B), first)
    sum(y.square().sum() for y in found.values()).backward()
    assert found["value"].shape == (T, B)
    assert all(p.grad is not None and p.grad.any() for p in net.parameters())
    assert set(state) == ({"body.h", "body.c"} if lstm else set())


def test_one_vector_becomes_an_mlp_and_output_layers_and_nothing_else() -> None:
    net = seeded(NetworkConfig(hidden=(8, 7)), SEEN["vector"])
    assert isinstance(net.body, MLP)
    assert {name: tuple(p.shape) for name, p in net.named_parameters()} == {
        "body.layers.0.weight": (8, 4),
        "body.layers.0.bias": (8,),
        "body.layers.1.weight": (7, 8),
        "body.layers.1.bias": (7,),
        "outputs.policy.weight": (5, 7),
        "outputs.policy.bias": (5,),
        "outputs.value.weight": (1, 7),
        "outputs.value.bias": (1,),
    }


def test_several_observations_meet_in_an_mlp() -> None:
    net = seeded(NetworkConfig(hidden=(8, 7)), SEEN["both"])
    assert isinstance(net.sources["image"], SmallCNN)
    assert isinstance(net.sources["inner/vector"], MLP)
    assert net.body.input_shape == (128 + 8,)
    assert net.body.output_shape() == (7,)


def test_images_are_read_by_the_network_that_fits_or_that_is_named() -> None:
    auto = seeded(NetworkConfig(), SEEN["large image"])
    assert isinstance(auto.sources["observation"], NatureCNN)
    assert isinstance(auto.body, Identity1D)
    small = seeded(NetworkConfig(image="small", image_size=9), SEEN["large image"])
    assert small.body.output_shape() == (9,)
    with pytest.raises(UsageError, match=r"12x12 is too small.*SmallCNN"):
        seeded(NetworkConfig(image="nature"), SEEN["image"])


def test_masks_are_not_read() -> None:
    net = seeded(NetworkConfig(), {"x": VECTOR, "action_mask": gs.MultiBinary(5)})
    assert list(net.sources) == ["x"]
    with pytest.raises(UsageError, match=r"\['action_mask'\]: expected at least one"):
        seeded(NetworkConfig(), {"action_mask": gs.MultiBinary(5)})


def test_bytes_are_read_as_fractions_of_the_spaces_bound() -> None:
    net = seeded(NetworkConfig(), {"x": gs.Box(0, 4, (3,), np.uint8)})
    x = torch.tensor([[0, 1, 4]], dtype=torch.uint8)
    exact, _ = net({"x": x.float() / 4}, HiddenState())
    torch.testing.assert_close(net({"x": x}, HiddenState())[0]["policy"], exact["policy"])


@pytest.mark.parametrize(
    ("name", "gain"),
    [
        ("body.layers.0", 2**0.5),
        ("body.layers.1", 2**0.5),
        ("outputs.policy", 0.01),
        ("outputs.value", 1.0),
    ],
)
def test_first_weights_are_orthogonal_with_their_gain(name: str, gain: float) -> None:
    layer = seeded(NetworkConfig(hidden=(16, 16)), SEEN["vector"]).get_submodule(name)
    w = layer.get_parameter("weight")
    gram = w @ w.T if w.shape[0] < w.shape[1] else w.T @ w
    torch.testing.assert_close(gram, gain**2 * torch.eye(len(gram)), atol=1e-5, rtol=1e-5)
    assert not layer.get_parameter("bias").any()


@pytest.mark.parametrize("init", ["orthogonal", "default"])
def test_the_seed_alone_decides_the_first_weights(init: str) -> None:
    config = NetworkConfig(init=init, lstm=4)  # type: ignore[arg-type]  # one of the two
    before = torch.random.get_rng_state()
    a, b, c = (seeded(config, SEEN["both"], seed).state_dict() for seed in (3, 3, 4))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert all(not torch.equal(a[name], c[name]) for name in a if name.endswith("weight"))


def test_default_weights_are_torchs_own() -> None:
    net = seeded(NetworkConfig(init="default", hidden=(64,)), SEEN["vector"])
    w = net.get_parameter("body.layers.0.weight")
    assert 0.45 < w.abs().max() <= 0.5  # uniform up to 1 / sqrt(4)


def test_separate_gives_each_value_a_network_of_its_own() -> None:
    outputs: dict[str, Shape] = {"policy": (5,), "std": (5,), "value": (), "value_risk": (3,)}
    net = build_network(NetworkConfig(separate=True, lstm=4), SEEN["vector"], outputs)
    assert isinstance(net, SplitNetwork)
    assert net.owners == {
        "policy": "policy",
        "std": "policy",
        "value": "value",
        "value_risk": "value_risk",
    }
    found, _ = net(sample(SEEN["vector"], B), net.initial_state(B))
    assert [found[name].shape for name in outputs] == [(B, 5), (B, 5), (B,), (B, 3)]


def test_separate_networks_start_with_weights_of_their_own() -> None:
    net = build_network(NetworkConfig(separate=True), SEEN["vector"], OUTPUTS)
    a, b = (net.get_parameter(f"networks.{n}.body.layers.0.weight") for n in ("policy", "value"))
    assert not torch.equal(a, b)


@pytest.mark.parametrize("separate", [False, True])
def test_normalised_observations_are_real_ones_only(separate: bool) -> None:
    config = NetworkConfig(normalize=True, separate=separate)
    net = build_network(config, SEEN["both"], OUTPUTS)
    observation = sample(SEEN["both"], T, B)
    net.observe(observation, torch.ones(T, B, dtype=torch.bool))
    means = {
        n: x for n, x in net.state_dict().items() if n.endswith("statistics.inner/vector.mean")
    }
    assert len(means) == 1 + separate
    for mean in means.values():
        torch.testing.assert_close(mean, observation["inner.vector"].mean((0, 1)))
    assert not any("statistics.image" in name for name in net.state_dict())


def test_normalising_makes_scale_and_offset_invisible() -> None:
    plain, scaled = (seeded(NetworkConfig(normalize=True), SEEN["vector"]) for _ in range(2))
    x = sample(SEEN["vector"], 50)["observation"]
    plain.observe({"observation": x})
    scaled.observe({"observation": x * 30 + 7})
    one, _ = plain({"observation": x}, HiddenState())
    other, _ = scaled({"observation": x * 30 + 7}, HiddenState())
    torch.testing.assert_close(one["value"], other["value"], atol=1e-4, rtol=1e-4)


def test_a_memory_remembers_at_first() -> None:
    net = build_network(NetworkConfig(lstm=3), SEEN["vector"], {"policy": (2,)})
    bias = next(p for n, p in net.named_parameters() if n.endswith("bias_ih_l0"))
    assert bias.tolist() == [0.0] * 3 + [1.0] * 3 + [0.0] * 6
