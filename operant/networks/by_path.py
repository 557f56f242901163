"""Networks of the user's own: a class or function that makes an `nn.Module`.

    class MyNet(nn.Module):
        def __init__(self, observation_spaces, outputs, width: int = 64): ...
        def forward(self, observation, hidden_state): ...

It is called with the spaces of the observations by name, the shapes of the outputs by name, and its
settings: every further argument, which has an annotation and a default. `forward` maps tensors
`[B, ...]` by name, as they arrive (bytes of images are not scaled), to the outputs `[B, *shape]` by
name, and the hidden state; one without memory may take and give none. A recurrent module has the
shapes of its hidden state by name as `state`. Critics find continuous actions among the
observations, as `action.<name>`; these must not enter the hidden state.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, make_dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from operant.core.annotations import annotation_of, function_of
from operant.core.config import Config
from operant.core.errors import UsageError
from operant.core.experience import HiddenState, Tensors
from operant.core.objects import find, is_name
from operant.core.spaces import Shape, Space
from operant.networks.assemble import NetworkConfig, lend_seed, without_masks
from operant.networks.custom import CustomNetwork
from operant.networks.noisy import NoisyLinear

ROWS = 2  # of the batch on which a new module is tried
PLACE = ("observation_spaces", "outputs")  # the first two arguments, whatever they are called


@dataclass(frozen=True, kw_only=True)
class OwnNetworkConfig(Config):
    """Settings of a network of one's own; a subclass is made for each."""

    path: ClassVar[str] = ""  # `module:Name` of what makes the module
    make: ClassVar[Callable[..., Any]]


def own_network_config(path: str) -> type[OwnNetworkConfig]:
    """The class of the settings of the network at `path`, from the arguments of what makes it."""
    if not is_name(path):
        raise UsageError(
            f"network = {path!r}: expected the module and name of a class or function that makes "
            f"an nn.Module, such as my_module:MyNet; settings of a built-in network have names, "
            f"such as network.hidden"
        )
    return _config(path, find(path, "network"))


@cache
def _config(path: str, make: Any) -> type[OwnNetworkConfig]:
    where = f"network = {path!r}"
    if isinstance(make, nn.Module) or not callable(make):
        raise UsageError(
            f"{where}: is a {type(make).__name__}; expected a class or function that makes a new "
            f"nn.Module, since an agent may need several; give its class, or wrap it in a function"
        )
    own = [(name, *_setting(where, make, p)) for name, p in _arguments(where, make).items()]
    why = f"is a setting of the built-in networks, and {path} has its own"
    listed = f": {', '.join(name for name, *_ in own)}" if own else ", of which there are none"
    refused = {f.name: why + listed for f in fields(NetworkConfig)}
    refused |= {"path": f"is no flag; name the network by --network {path}"}
    about = (inspect.getdoc(make) or "Network of your own.").split("\n", maxsplit=1)[0]
    namespace = {"path": path, "make": staticmethod(make), "refused": refused, "__doc__": about}
    options: Any = {"frozen": True, "kw_only": True, "bases": (OwnNetworkConfig,)}
    return make_dataclass("OwnNetworkConfig", own, namespace=namespace, **options)


def _arguments(where: str, make: Any) -> dict[str, inspect.Parameter]:
    """The arguments that are settings: all that have a name, but the first two."""
    try:
        found = dict(inspect.signature(make).parameters)
    except ValueError:  # built in, in C
        found = {}
    named = {k: p for k, p in found.items() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}
    first = [p for p in list(found.values())[:2] if p.kind is not p.KEYWORD_ONLY]
    if len(first) < len(PLACE):
        raise UsageError(
            f"{where}: takes ({', '.join(map(str, found.values()))}); expected it to be called "
            f"with ({', '.join(PLACE)}, **settings)"
        )
    return dict(list(named.items())[2:])


def _setting(where: str, make: Any, parameter: inspect.Parameter) -> tuple[Any, Any]:
    """The type of a setting, and its default as dataclasses state it."""
    name = parameter.name
    try:
        hint = annotation_of(function_of(make), name)
    except NameError as error:
        raise UsageError(f"{where}: the annotation of {name!r}: {error}") from None
    if hint is None or parameter.default is parameter.empty:
        lacks = "annotation" if hint is None else "default"
        raise UsageError(
            f"{where}: the argument {name!r} has no {lacks}; expected both, such as "
            f"`{name}: int = 64`, which make it a setting"
        )
    default = parameter.default
    return hint, field(default_factory=lambda: default)


def build_own_network(
    config: OwnNetworkConfig,
    observation_spaces: Mapping[str, Space],
    outputs: Mapping[str, Shape],
    generator: torch.Generator | None = None,
    late: Mapping[str, Space] | None = None,
    noisy: bool = False,
) -> OwnNetwork:
    """A module of one's own for these spaces; the same generator, the same weights."""
    spaces = {**without_masks(observation_spaces), **(late or {})}
    settings = {f.name: getattr(config, f.name) for f in fields(config)}
    where = f"network = {config.path!r}"
    with lend_seed(generator):
        with _explained(f"{where}: it cannot be made"):
            module = type(config).make(dict(spaces), dict(outputs), **settings)
        if not isinstance(module, nn.Module):
            raise UsageError(f"{where}: gave a {type(module).__name__}; expected an nn.Module")
        if noisy and not any(isinstance(part, NoisyLinear) for part in module.modules()):
            raise UsageError(
                f"{where}: has no noisy layer, and the agent explores by noise in weights; put "
                f"operant.networks.NoisyLinear into it, or use --no-agent.noisy"
            )
        network = OwnNetwork(where, module, tuple(spaces), outputs)
        with _in_eval_mode(module), torch.no_grad():
            _try_out(network, spaces, tuple(late or {}))
    return network


class OwnNetwork(CustomNetwork):
    """A module that was made by the user's own class or function; `where` begins its errors."""

    def __init__(
        self, where: str, module: nn.Module, reads: tuple[str, ...], outputs: Mapping[str, Shape]
    ) -> None:
        state = getattr(module, "state", {})
        if not isinstance(state, Mapping):
            raise UsageError(
                f"{where}: its `state` is {state!r}; expected shapes by name, as in {{'h': (64,)}}"
            )
        super().__init__(module, state)
        self.where, self.reads, self.shapes = where, reads, dict(outputs)

    def forward(
        self,
        observation: Tensors,
        hidden_state: HiddenState,
        first: Tensor | None = None,
        outputs: tuple[str, ...] | None = None,
    ) -> tuple[Tensors, HiddenState]:
        """The wanted outputs, of those that the agent asked for; masks are not shown."""
        seen = {name: observation[name] for name in self.reads}
        return super().forward(seen, hidden_state, first, outputs or tuple(self.shapes))


def _try_out(network: OwnNetwork, spaces: Mapping[str, Space], late: tuple[str, ...]) -> None:
    """Refuse a module that does not give what the agent needs, before anything is trained."""
    where, inputs = network.where, {name: _zeros(space) for name, space in spaces.items()}
    fresh = network.initial_state(ROWS)
    seen = ", ".join(f"{name} {tuple(x.shape)}" for name, x in inputs.items())
    with _explained(f"{where}: its forward fails on {seen}"):
        found, carried = CustomNetwork.forward(network, inputs, fresh)
    for name, shape in network.shapes.items():
        if name not in found:
            raise UsageError(
                f"{where}: gives the outputs {sorted(found)}; expected also {name!r}, "
                f"{(ROWS, *shape)} for a batch of {ROWS}"
            )
        if tuple(found[name].shape) != (ROWS, *shape) or not found[name].is_floating_point():
            raise UsageError(
                f"{where}: output {name!r} is {found[name].dtype} {tuple(found[name].shape)} for a "
                f"batch of {ROWS}; expected floating-point {(ROWS, *shape)}"
            )
    for name, x in carried.items():
        if x.shape != fresh[name].shape:
            raise UsageError(
                f"{where}: the hidden state {name!r} is {tuple(x.shape)} for a batch of {ROWS}; "
                f"expected {tuple(fresh[name].shape)}, as its `state` says"
            )
    other = network({**inputs, **{name: inputs[name] + 1 for name in late}}, fresh)[1]
    for name, x in carried.items():
        if not torch.equal(x, other[name]):
            raise UsageError(
                f"{where}: the hidden state {name!r} depends on {', '.join(late)}; expected that "
                f"actions join after the memory, since some are evaluated that were never taken"
            )


def _zeros(space: Space) -> Tensor:
    dtype: Any = space.dtype or np.float32
    return torch.from_numpy(np.zeros((ROWS, *(space.shape or ())), dtype))


@contextmanager
def _explained(what: str) -> Iterator[None]:
    """An error of the user's own code as one sentence that says where in it."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{what.partition(': ')[0]}: {error}") from None
    except Exception as error:  # whatever that code raises
        last = traceback.extract_tb(error.__traceback__)[-1]
        own = [f for f in traceback.extract_tb(error.__traceback__) if "/torch/" not in f.filename]
        at = own[-1] if own else last
        raise UsageError(
            f"{what}: {type(error).__name__}: {error} (line {at.lineno} of {at.filename})"
        ) from error


@contextmanager
def _in_eval_mode(module: nn.Module) -> Iterator[None]:
    """Statistics, such as batch norm's, are not to move."""
    training = [m for m in module.modules() if m.training]
    module.eval()
    try:
        yield
    finally:
        for m in training:
            m.training = True
