"""A network for what the environment shows and the agent wants, from a few settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod, sqrt
from typing import Literal

import numpy as np
import torch
from gymnasium import spaces as gs
from torch import nn

from operant.core.config import Config, Count, CountOrZero
from operant.core.errors import UsageError
from operant.core.spaces import Shape, Space, choices, is_mask
from operant.networks.image import ConvNet, NatureCNN, SmallCNN
from operant.networks.modular import ModularNetwork
from operant.networks.normalize import Normalizer
from operant.networks.precision import Precision, resolve_precision
from operant.networks.rank import convert_shape
from operant.networks.split import Towers
from operant.networks.submodule import Chain, SubModule, identity, key
from operant.networks.vector import LSTM, MLP, Activation

Reader = Literal["auto", "nature", "small", "flat"]


@dataclass(frozen=True, kw_only=True)
class NetworkConfig(Config):
    """How to read observations and what to make of them."""

    hidden: tuple[Count, ...] = (64, 64)  # sizes of the layers that read vectors
    activation: Activation = "tanh"  # after each of these layers
    image: Reader = "auto"  # reads images; auto: nature from 36 pixels; flat: as if vectors
    image_size: CountOrZero = 0  # features of an image; 0: 512 for nature, 128 for small
    lstm: CountOrZero = 0  # size of a memory behind all of this; 0: none
    separate: bool = False  # give policy and value networks of their own
    init: Literal["orthogonal", "default"] = "orthogonal"  # first weights; default: PyTorch's own
    normalize: bool = False  # see real-valued observations in standard deviations from their mean
    precision: Precision = "auto"  # of products; auto: bf16 for images where the processor has it


def build_network(
    config: NetworkConfig,
    observation_spaces: Mapping[str, Space],
    outputs: Mapping[str, Shape],
    generator: torch.Generator | None = None,
    late: Mapping[str, Space] | None = None,
) -> ModularNetwork | Towers:
    """A network from these observations to `outputs`; the same generator, the same weights.

    `late` inputs join after the memory, if there is one; the `hidden` layers then follow them.
    """
    seen = {name: space for name, space in observation_spaces.items() if not is_mask(name)}
    if not seen:
        names = sorted(observation_spaces)
        raise UsageError(f"observations {names}: expected at least one that is not an action mask")
    generator = generator or _fresh_generator()
    # PyTorch's layers draw their first weights from the global generator: lend it a seed.
    with torch.random.fork_rng(devices=[]):
        seed = int(torch.randint(2**62, (), generator=generator, device=generator.device))
        torch.default_generator.manual_seed(seed)
        owners = {name: _tower(name) if config.separate else "policy" for name in outputs}
        networks = {
            tower: _build_one(
                config, seen, {n: s for n, s in outputs.items() if owners[n] == tower}, late or {}
            )
            for tower in dict.fromkeys(owners.values())
        }
    return Towers(networks, owners) if len(networks) > 1 else next(iter(networks.values()))


def _fresh_generator() -> torch.Generator:
    generator = torch.Generator()
    generator.seed()
    return generator


def _tower(output: str) -> str:
    return output if is_value(output) else "policy"


def is_value(output: str) -> bool:
    """Whether an output estimates a return rather than steering actions."""
    return output.startswith("value")


def _build_one(
    config: NetworkConfig,
    spaces: Mapping[str, Space],
    outputs: Mapping[str, Shape],
    late: Mapping[str, Space],
) -> ModularNetwork:
    # What vectors pass through before they are joined: everything if a memory joins them,
    # nothing if there is only one, else one layer, for the body has all of them.
    alone = config.hidden if config.lstm else config.hidden[: len(spaces) > 1]
    sources = {name: _source(config, space, alone) for name, space in spaces.items()}
    joined = (sum(source.output_shape(1)[0] for source in sources.values()),)
    normalizer = _normalizer(spaces) if config.normalize else None
    body = _body(config, sources, joined, bool(late))
    late_shapes = {name: _shape(space) for name, space in late.items()}
    width = body.output_shape(1)[0] + sum(map(prod, late_shapes.values()))
    heads = {1: MLP((width,), config.hidden, config.activation)} if late else {}
    images = any(isinstance(source, ConvNet) for source in sources.values())
    bf16 = resolve_precision(config.precision, images) == "bf16"
    network = ModularNetwork(sources, body, outputs, heads, normalizer, late_shapes, bf16)
    if config.init == "orthogonal":
        _orthogonal(network)
    return network


def _source(config: NetworkConfig, space: Space, sizes: tuple[int, ...]) -> SubModule:
    shape = _shape(space)
    reader = _reader(config.image, shape)
    if reader != "flat":
        network, own = (SmallCNN, 128) if reader == "small" else (NatureCNN, 512)
        source: SubModule = network(shape, config.image_size or own)
    elif sizes:
        layers = MLP(convert_shape(shape, 1), sizes, config.activation)
        source = layers if len(shape) == 1 else Chain(identity(shape), layers)
    else:
        source = identity(shape)
    if isinstance(space, gs.Box) and space.dtype == np.uint8:
        source.byte_scale = 1 / max(1, int(space.high.max()))
    return source


def _reader(image: Reader, shape: Shape) -> Reader:
    """What `auto` stands for here; what is no image is flat."""
    if len(shape) != 3:
        return "flat"
    if image != "auto":
        return image
    side = min(shape[1:])
    return "nature" if side >= 36 else "small" if side >= 3 else "flat"


def _body(
    config: NetworkConfig, sources: Mapping[str, SubModule], shape: Shape, late: bool
) -> SubModule:
    if config.lstm:
        return LSTM(shape, config.lstm)
    if late:
        return identity(shape)  # the layers that read vectors come after what is late
    if [type(source) for source in sources.values()] in ([NatureCNN], [SmallCNN]):
        return identity(shape)  # an image alone has had its fully connected layer
    return MLP(shape, config.hidden, config.activation)


def _shape(space: Space) -> Shape:
    """Of the observation as it arrives: choices are spread out, one number each."""
    if isinstance(space, gs.Discrete | gs.MultiDiscrete):
        return (sum(choices(space)),)
    return tuple(space.shape or ())


def _normalizer(spaces: Mapping[str, Space]) -> Normalizer | None:
    real = {
        name: _shape(space)
        for name, space in spaces.items()
        if isinstance(space, gs.Box) and np.issubdtype(space.dtype, np.floating)
    }
    return Normalizer(real) if real else None


def _orthogonal(network: ModularNetwork) -> None:
    """Orthogonal weights: gain sqrt 2 inside, 1 for values, 0.01 for a nearly even policy."""
    for part in (network.sources, network.body, network.heads):
        for module in part.modules():
            if isinstance(module, nn.LSTM):
                _fill(module, 1.0)
                # Remember at first: a forget gate that starts half closed lets everything fade.
                bias: nn.Parameter = module.bias_ih_l0  # type: ignore[assignment]  # by its name
                nn.init.ones_(bias[module.hidden_size : 2 * module.hidden_size])
            elif isinstance(module, nn.Linear | nn.Conv2d):
                _fill(module, sqrt(2))
    for name in network.output_shapes:
        _fill(network.outputs[key(name)], 1.0 if is_value(name) else 0.01)


def _fill(layer: nn.Module, gain: float) -> None:
    for name, parameter in layer.named_parameters():
        if name.startswith("bias"):
            nn.init.zeros_(parameter)
        else:
            nn.init.orthogonal_(parameter, gain)
