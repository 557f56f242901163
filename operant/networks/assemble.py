"""A network for what the environment shows and the agent wants, from a few settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Literal

import numpy as np
import torch
from gymnasium import spaces as gs

from operant.core.config import Config, Count, CountOrZero
from operant.core.errors import UsageError
from operant.core.spaces import Shape, Space, choices, is_mask
from operant.networks.image import NatureCNN, SmallCNN
from operant.networks.initialize import is_value, orthogonal
from operant.networks.modular import ModularNetwork
from operant.networks.noisy import make_noisy
from operant.networks.normalize import Normalizer
from operant.networks.precision import Precision, resolve_precision
from operant.networks.rank import convert_shape
from operant.networks.recurrent import LSTM
from operant.networks.split import SplitNetwork
from operant.networks.submodule import Chain, SubModule, identity
from operant.networks.vector import MLP, Activation

Reader = Literal["auto", "nature", "small", "flat"]
Q_VALUES = "q."  # what outputs that hold Q-values begin with
ESTIMATES = ("value", Q_VALUES)  # of returns


@dataclass(frozen=True, kw_only=True)
class NetworkConfig(Config):
    """Network architecture."""

    hidden: tuple[Count, ...] = (64, 64)  # sizes of the hidden layers for vector observations
    activation: Activation = "tanh"  # activation function after each hidden layer
    image: Reader = "auto"  # CNN for images; auto: nature from 36 pixels; flat: flatten the image
    image_size: CountOrZero = 0  # features the CNN extracts; 0: 512 for nature, 128 for small
    lstm: CountOrZero = 0  # hidden size of an LSTM after the feature extractor; 0: none
    separate: bool | None = False  # separate networks for policy and value; none: without images
    init: Literal["orthogonal", "default"] = "orthogonal"  # weight initialisation; default: torch's
    normalize: bool = False  # normalise real-valued observations by running mean and variance
    precision: Precision = "auto"  # of matrix products; auto: bf16 for images where it is fast


def min_weights(config: NetworkConfig) -> int:
    """The number of weights between hidden layers, known before a network is made of them."""
    layers = sum(width * size for width, size in pairwise((1, *config.hidden)))
    return layers + 4 * config.lstm * (config.lstm + 1)


def build_network(
    config: NetworkConfig,
    observation_spaces: Mapping[str, Space],
    outputs: Mapping[str, Shape],
    generator: torch.Generator | None = None,
    late: Mapping[str, Space] | None = None,
    noisy: bool = False,
) -> ModularNetwork | SplitNetwork:
    """A network from these observations to `outputs`; the same generator, the same weights.

    `late` inputs join after the memory, if there is one; the `hidden` layers then follow them. With
    `noisy` all fully connected layers are `NoisyLinear`.
    """
    seen = without_masks(observation_spaces)
    with lend_seed(generator):
        separate = config.separate
        if separate is None:
            separate = all(
                _reader(config.image, _shape(space)) == "flat" for space in seen.values()
            )
        owners = {name: _owner(name, outputs) if separate else "policy" for name in outputs}
        networks = {
            owner: _build_one(
                config, seen, {n: s for n, s in outputs.items() if owners[n] == owner}, late or {}
            )
            for owner in dict.fromkeys(owners.values())
        }
        for network in networks.values() if noisy else ():
            make_noisy(network)
    return SplitNetwork(networks, owners) if len(networks) > 1 else next(iter(networks.values()))


def without_masks(observation_spaces: Mapping[str, Space]) -> dict[str, Space]:
    """The observations that networks read."""
    seen = {name: space for name, space in observation_spaces.items() if not is_mask(name)}
    if not seen:
        names = sorted(observation_spaces)
        raise UsageError(f"observations {names}: expected at least one that is not an action mask")
    return seen


@contextmanager
def lend_seed(generator: torch.Generator | None) -> Iterator[None]:
    """A seed of `generator` for the global one, from which PyTorch's layers draw first weights."""
    if generator is None:
        generator = torch.Generator()
        generator.seed()
    with torch.random.fork_rng(devices=[]):
        seed = int(torch.randint(2**62, (), generator=generator, device=generator.device))
        torch.default_generator.manual_seed(seed)
        yield


def _owner(output: str, outputs: Iterable[str]) -> str:
    """The network behind an output; Q-values beside a policy are apart from it, as values are."""
    policy = not all(name.startswith(ESTIMATES) for name in outputs)
    if policy and output.startswith(Q_VALUES):
        return "value"
    return output if is_value(output) else "policy"


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
    images = any(isinstance(source, NatureCNN | SmallCNN) for source in sources.values())
    bf16 = resolve_precision(config.precision, images) == "bf16"
    network = ModularNetwork(sources, body, outputs, heads, normalizer, late_shapes, bf16)
    if config.init == "orthogonal":
        orthogonal(network)
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
