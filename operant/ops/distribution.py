"""Distributions over actions, as functions of the numbers that a network gives out.

Parameters are `[..., P]` by action name. A mask is bool `[..., P]`, true where an action is
allowed. Objects hold shapes only: for the few rows of one moment, `torch.distributions` would
cost more than the mathematics. Draws take their generator, on the device of the parameters.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Protocol

import torch
from gymnasium import spaces as gs
from torch import Generator, Tensor

from operant.core.errors import UsageError, suggest
from operant.core.experience import Tensors
from operant.core.spaces import MASK, Shape, Space, choices, is_mask
from operant.ops.categorical import Categorical, MultiCategorical
from operant.ops.gaussian import Gaussian, SquashedGaussian

__all__ = [
    "ActionDistribution",
    "Categorical",
    "Gaussian",
    "MultiCategorical",
    "Part",
    "SquashedGaussian",
    "check_masks",
    "distribution_for",
    "masks_of",
]


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


class ActionDistribution:
    """Independent parts by action name; a name that `masks` lacks is unmasked."""

    def __init__(self, parts: dict[str, Part]) -> None:
        self.parts = parts

    @property
    def param_shapes(self) -> dict[str, tuple[int]]:
        """What a network has to give out."""
        return {name: (part.params,) for name, part in self.parts.items()}

    def sample(self, params: Tensors, masks: Tensors, generator: Generator) -> Tensors:
        """Draw every part, without a gradient."""
        return {
            name: part.sample(params[name], masks.get(name), generator)
            for name, part in self.parts.items()
        }

    def noise(self, lead: Shape, generator: Generator) -> Tensors:
        """Standard normals for actions `[*lead, ...]`; every part must be Gaussian."""
        return {n: _continuous(n, part).noise(lead, generator) for n, part in self.parts.items()}

    def sample_with_log_prob(self, params: Tensors, noise: Tensors) -> tuple[Tensors, Tensor]:
        """What `noise` draws, a differentiable function of the parameters, and its log-density."""
        drawn = {
            name: _continuous(name, part).sample_with_log_prob(params[name], noise[name])
            for name, part in self.parts.items()
        }
        actions = {name: action for name, (action, _) in drawn.items()}
        return actions, _sum(log_prob for _, log_prob in drawn.values())

    def mode(self, params: Tensors, masks: Tensors) -> Tensors:
        """The likeliest action of every part."""
        return {n: part.mode(params[n], masks.get(n)) for n, part in self.parts.items()}

    def log_prob(self, params: Tensors, action: Tensors, masks: Tensors) -> Tensor:
        """Log-probability of the whole action, `[...]`: the sum over its parts."""
        return _sum(
            part.log_prob(params[name], action[name], masks.get(name))
            for name, part in self.parts.items()
        )

    def entropy(self, params: Tensors, masks: Tensors) -> Tensor:
        """Entropy of the whole action, `[...]`: the sum over its parts."""
        return _sum(part.entropy(params[n], masks.get(n)) for n, part in self.parts.items())

    def evaluate(self, params: Tensors, action: Tensors, masks: Tensors) -> tuple[Tensor, Tensor]:
        """`log_prob` and `entropy` at the cost of one."""
        pairs = [p.evaluate(params[n], action[n], masks.get(n)) for n, p in self.parts.items()]
        return _sum(log_prob for log_prob, _ in pairs), _sum(entropy for _, entropy in pairs)

    def kl(self, p: Tensors, q: Tensors, masks: Tensors) -> Tensor:
        """KL(p, q) of the whole action, `[...]`: the sum over its parts."""
        return _sum(part.kl(p[n], q[n], masks.get(n)) for n, part in self.parts.items())


def distribution_for(action_spaces: dict[str, Space], squash: bool = False) -> ActionDistribution:
    """The distribution over these actions; `squash` keeps a Box inside (-1, 1)."""
    continuous = SquashedGaussian if squash else Gaussian
    parts: dict[str, Part] = {}
    for name, space in action_spaces.items():
        if isinstance(space, gs.Box):
            parts[name] = continuous(space.shape)
        elif isinstance(space, gs.Discrete):
            parts[name] = Categorical(int(space.n))
        elif counts := choices(space):
            parts[name] = MultiCategorical(tuple(counts))
        else:
            raise UsageError(
                f"action {name!r}: no distribution over {space}; expected a Box, Discrete, "
                "MultiDiscrete or MultiBinary with at least one element; convert it in a wrapper"
            )
    return ActionDistribution(parts)


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


def check_masks(masks: Tensors, deciding: Tensor | None = None) -> None:
    """Refuse a mask that allows nothing where `deciding` `[...]` is true (everywhere, if None).

    Waits for the device, so call it where masks are on the CPU. A mask over several parts is only
    seen to allow something in one of them.
    """
    for name, mask in masks.items():
        stuck = ~mask.any(-1)
        if deciding is not None:
            stuck = stuck & deciding
        if stuck.any():
            raise UsageError(
                f"the mask of action {name!r} allows nothing at index {stuck.nonzero()[0].tolist()}"
                "; expected an allowed action before the end of an episode; mend the environment"
            )


def _continuous(name: str, part: Part) -> Gaussian:
    if isinstance(part, Gaussian):
        return part
    raise UsageError(
        f"action {name!r}: a draw from {part} is no differentiable function of its parameters; "
        "use sample and log_prob"
    )


def _sum(parts: Iterable[Tensor]) -> Tensor:
    return reduce(torch.add, parts)
