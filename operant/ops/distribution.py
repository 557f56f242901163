"""Distributions over actions, as functions of the numbers that a network gives out.

The network's output `policy.<action>` holds the parameters `[..., P]` of that action. A mask is
bool `[..., P]`, true where an action is allowed. Objects hold shapes only: for the few rows of one
moment, `torch.distributions` would cost more than the mathematics. Draws take their generator, on
the device of the parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from gymnasium import spaces as gs
from torch import Generator, Tensor

from operant.core.errors import UsageError, suggest
from operant.core.experience import Arrays, Tensors
from operant.core.spaces import FREE_STD, MASK, Shape, Space, choices, is_mask
from operant.core.tree import Array
from operant.ops.categorical import Categorical, MultiCategorical
from operant.ops.gaussian import Gaussian

POLICY = "policy."  # what outputs that steer actions begin with, so that no action can be another's


class Part(Protocol):
    """The distribution of one named action."""

    @property
    def params(self) -> int: ...
    def sample(self, params: Tensor, mask: Tensor | None, generator: Generator) -> Tensor: ...
    def mode(self, params: Tensor, mask: Tensor | None) -> Tensor: ...
    def log_prob(self, params: Tensor, action: Tensor, mask: Tensor | None) -> Tensor: ...
    def entropy(self, params: Tensor, mask: Tensor | None) -> Tensor: ...
    def evaluate(
        self, params: Tensor, action: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]: ...
    def kl(self, p: Tensor, q: Tensor, mask: Tensor | None) -> Tensor: ...


@runtime_checkable
class NumpyPart(Protocol):
    """A part that can also be drawn in NumPy, a call of which costs far less than one of torch."""

    def sample_numpy(
        self, params: Array, generator: Generator, rows: tuple[int, int, int], log_prob: bool
    ) -> tuple[Array, Array | None]: ...


class Distribution(Protocol):
    """A policy as agents see it: a function of what the network gives out."""

    in_numpy: bool

    @property
    def parts(self) -> Mapping[str, Any]: ...  # by action name
    @property
    def outputs(self) -> Mapping[str, Shape]: ...
    def sample(self, out: Tensors, masks: Tensors, generator: Generator) -> Tensors: ...
    def mode(self, out: Tensors, masks: Tensors) -> Tensors: ...
    def log_prob(self, out: Tensors, action: Tensors, masks: Tensors) -> Tensor: ...
    def sample_numpy(
        self, out: Arrays, generator: Generator, rows: tuple[int, int, int], log_prob: bool = True
    ) -> tuple[Arrays, Array | None]: ...
    def late(self, action: Tensors) -> Tensors: ...  # what the network must be told of actions
    def evaluate(
        self, out: Tensors, action: Tensors, masks: Tensors
    ) -> tuple[Tensor, Tensor]: ...  # log-probabilities and entropies
    def kl(self, p: Tensors, q: Tensors, masks: Tensors) -> Tensor: ...


class ActionDistribution:
    """Independent parts by action name; a name that `masks` lacks is unmasked.

    Log standard deviations of actions in `free_std` are outputs of their own, `log_std.<action>`.
    """

    def __init__(self, parts: dict[str, Part], free_std: Iterable[str] = ()) -> None:
        self.parts, self.free_std = parts, frozenset(free_std)
        self.numpy_parts = {k: part for k, part in parts.items() if isinstance(part, NumpyPart)}
        self.in_numpy = len(self.numpy_parts) == len(parts)  # whether `sample_numpy` can draw all

    @property
    def outputs(self) -> dict[str, Shape]:
        """What a network has to give out."""
        shapes: dict[str, Shape] = {}
        for name, part in self.parts.items():
            free = name in self.free_std
            shapes[POLICY + name] = (part.params // 2 if free else part.params,)
        for name in self.parts:
            if name in self.free_std:
                shapes[FREE_STD + name] = shapes[POLICY + name]
        return shapes

    def late(self, action: Tensors) -> Tensors:
        """Nothing: parameters do not depend on the action that they are asked about."""
        return {}

    def params(self, out: Tensors, name: str) -> Tensor:
        """The parameters `[..., P]` of one action."""
        mean = out[POLICY + name]
        if name not in self.free_std:
            return mean
        return torch.cat((mean, out[FREE_STD + name].expand_as(mean)), -1)

    def sample(self, out: Tensors, masks: Tensors, generator: Generator) -> Tensors:
        """Draw every part, without a gradient."""
        return {
            name: part.sample(self.params(out, name), masks.get(name), generator)
            for name, part in self.parts.items()
        }

    def sample_numpy(
        self, out: Arrays, generator: Generator, rows: tuple[int, int, int], log_prob: bool = True
    ) -> tuple[Arrays, Array | None]:
        """`sample` in NumPy where nothing is masked, and the log-probability `[B]` if wanted.

        Given rows `start` to `stop` of `total`, it draws for all of them, as `sample` would.
        """
        drawn = {
            name: part.sample_numpy(self._numpy_params(out, name), generator, rows, log_prob)
            for name, part in self.numpy_parts.items()
        }
        each = [x for _, x in drawn.values() if x is not None]
        total = reduce(lambda one, other: one + other, each) if log_prob else None
        return {name: action for name, (action, _) in drawn.items()}, total

    def _numpy_params(self, out: Arrays, name: str) -> Array:
        mean = out[POLICY + name]
        if name not in self.free_std:
            return mean
        return np.concatenate((mean, out[FREE_STD + name]), 1)

    def mode(self, out: Tensors, masks: Tensors) -> Tensors:
        """The most likely action of every part."""
        return {n: part.mode(self.params(out, n), masks.get(n)) for n, part in self.parts.items()}

    def log_prob(self, out: Tensors, action: Tensors, masks: Tensors) -> Tensor:
        """Log-probability of the whole action, `[...]`: the sum over its parts."""
        return _sum(
            part.log_prob(self.params(out, name), action[name], masks.get(name))
            for name, part in self.parts.items()
        )

    def evaluate(self, out: Tensors, action: Tensors, masks: Tensors) -> tuple[Tensor, Tensor]:
        """`log_prob` and `entropy` at the cost of one."""
        pairs = [
            part.evaluate(self.params(out, name), action[name], masks.get(name))
            for name, part in self.parts.items()
        ]
        return _sum(log_prob for log_prob, _ in pairs), _sum(entropy for _, entropy in pairs)

    def kl(self, p: Tensors, q: Tensors, masks: Tensors) -> Tensor:
        """KL(p, q) of the whole action, `[...]`: the sum over its parts."""
        return _sum(
            part.kl(self.params(p, name), self.params(q, name), masks.get(name))
            for name, part in self.parts.items()
        )


def distribution_for(
    action_spaces: dict[str, Space], continuous: type[Gaussian] = Gaussian, free_std: bool = False
) -> ActionDistribution:
    """The distribution over these actions; that over a Box is `continuous`.

    `free_std`: its standard deviation does not depend on the observation.
    """
    parts: dict[str, Part] = {}
    for name, space in action_spaces.items():
        if isinstance(space, gs.Box):
            parts[name] = continuous(space.shape)
        elif isinstance(space, gs.Discrete):
            parts[name] = Categorical(int(space.n))
        elif counts := choices(space):
            shape = space.shape or ()
            parts[name] = MultiCategorical(tuple(counts), shape if len(shape) > 1 else ())
        else:
            raise UsageError(
                f"action {name!r}: no distribution over {space}; expected a Box, Discrete, "
                "MultiDiscrete or MultiBinary with at least one element; convert it in a wrapper"
            )
    boxes = [name for name, space in action_spaces.items() if isinstance(space, gs.Box)]
    return ActionDistribution(parts, boxes if free_std else ())


def masks_of(observation: Tensors, action_names: Iterable[str]) -> Tensors:
    """Masks by action name: observation `action_mask`, or `action_mask.<name>` of several."""
    found = [name for name in observation if is_mask(name)]
    if not found:
        return {}
    actions = list(action_names)
    if found == [MASK] and len(actions) == 1:
        return {actions[0]: observation[MASK].bool()}
    expected = {f"{MASK}.{action}": action for action in actions}
    for name in found:
        if name not in expected:
            raise UsageError(
                f"observation {name!r} is a mask over no action{suggest(name, expected)}"
            )
    return {expected[name]: observation[name].bool() for name in found}


def _sum(parts: Iterable[Tensor]) -> Tensor:
    return reduce(torch.add, parts)
