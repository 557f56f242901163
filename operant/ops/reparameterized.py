"""Actions as differentiable functions of a policy's parameters and of noise (SAC).

Bounded actions are a Gaussian through tanh (arXiv:1801.01290, appendix C).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce

import numpy as np
import torch
from torch import Generator, Tensor
from torch.nn import functional as F

from operant.core.errors import UsageError
from operant.core.experience import Tensors
from operant.core.spaces import Shape
from operant.core.tree import Array
from operant.ops.distribution import POLICY, ActionDistribution, Part
from operant.ops.gaussian import Gaussian, draw, log_density, log_prob_of, split, standard_normal

BORDER = 1 - np.finfo(np.float32).eps  # of squashed actions in NumPy


@dataclass(frozen=True)
class SquashedGaussian(Gaussian):
    """A Gaussian through tanh; actions are inside (-1, 1)."""

    def sample(self, params: Tensor, mask: Tensor | None, generator: Generator) -> Tensor:
        """Draw without a gradient."""
        return self._shaped(_inside(draw(params.detach(), generator).tanh()))

    def mode(self, params: Tensor, mask: Tensor | None) -> Tensor:
        """The mean, squashed."""
        return self._shaped(_inside(params.chunk(2, -1)[0].tanh()))

    def log_prob(self, params: Tensor, action: Tensor, mask: Tensor | None) -> Tensor:
        """Log-density of `action`, `[...]`; an action on the border counts as just inside it."""
        x = _inside(self._flat(action)).atanh()
        return log_prob_of(params, x) - _log_slope(x)

    def sample_numpy(
        self, params: Array, generator: Generator, rows: tuple[int, int, int], log_prob: bool
    ) -> tuple[Array, Array | None]:
        """As a Gaussian's; whoever acts by this distribution needs no log-probability."""
        assert not log_prob, "the log-probability of squashed actions is computed in torch only"
        action, _ = super().sample_numpy(params, generator, rows, log_prob)
        return np.tanh(action).clip(-BORDER, BORDER), None

    def entropy(self, params: Tensor, mask: Tensor | None) -> Tensor:
        """Refused: it has no closed form, and the Gaussian's own is another number."""
        raise UsageError(
            "entropy of a squashed Gaussian: it has no closed form; use the mean of -log_prob "
            "from rsample, or a Gaussian that is not squashed"
        )


def noise_for(distribution: ActionDistribution, lead: Shape, generator: Generator) -> Tensors:
    """Standard normals for actions `[*lead, ...]`; every part must be Gaussian."""
    return {
        name: standard_normal((*lead, _gaussian(name, part).params // 2), generator)
        for name, part in distribution.parts.items()
    }


def rsample(
    distribution: ActionDistribution, out: Tensors, noise: Tensors
) -> tuple[Tensors, Tensor]:
    """Reparameterised actions, that `noise` draws, and their log-density `[...]`."""
    drawn = {
        name: rsample_part(_gaussian(name, part), out[POLICY + name], noise[name])
        for name, part in distribution.parts.items()
    }
    actions = {name: action for name, (action, _) in drawn.items()}
    return actions, reduce(torch.add, (log_prob for _, log_prob in drawn.values()))


def rsample_part(part: Gaussian, params: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """A reparameterised action of one part, mean + std · noise or its tanh, and its log-density."""
    mean, log_std = split(params)
    x = torch.addcmul(mean, log_std.exp(), noise)
    # From the noise itself: recovering it from the action would lose it where deviations are small.
    log_prob = log_density(noise, log_std)
    if isinstance(part, SquashedGaussian):
        return part._shaped(_inside(x.tanh())), log_prob - _log_slope(x)
    return part._shaped(x), log_prob


def _gaussian(name: str, part: Part) -> Gaussian:
    if isinstance(part, Gaussian):
        return part
    raise UsageError(
        f"action {name!r}: a draw from {part} is no differentiable function of its parameters; "
        "use sample and log_prob"
    )


def _log_slope(x: Tensor) -> Tensor:
    """Log of the slope of tanh, 1 - tanh(x)^2, summed; never the log of a rounded zero."""
    return 2 * (math.log(2) - x - F.softplus(-2 * x)).sum(-1)


def _inside(action: Tensor) -> Tensor:
    # A float tanh reaches one from about nine on, where atanh would be infinite.
    border = 1 - torch.finfo(action.dtype).eps
    return action.clamp(-border, border)
