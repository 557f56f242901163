"""Distributions over continuous actions; parameters are means, then log standard deviations.

There is nothing to forbid here, and masks are not looked at.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Generator, Tensor
from torch.nn import functional as F

from operant.core.errors import UsageError
from operant.core.spaces import Shape

LOG_STD = (-20.0, 2.0)  # a log standard deviation outside counts as the nearer of these
HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True)
class Gaussian:
    """Independent normals; actions are `[..., *shape]`."""

    shape: Shape

    @property
    def params(self) -> int:
        return 2 * math.prod(self.shape)

    def sample(self, params: Tensor, mask: Tensor | None, generator: Generator) -> Tensor:
        """Draw without a gradient."""
        return self._shaped(_draw(params.detach(), generator))

    def noise(self, lead: Shape, generator: Generator) -> Tensor:
        """Standard normals for actions `[*lead, ...]`."""
        return _noise((*lead, self.params // 2), generator)

    def sample_with_log_prob(self, params: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """What `noise` draws, a differentiable function of the parameters, and its log-density."""
        x, log_prob = _drawn_with_log_prob(params, noise)
        return self._shaped(x), log_prob

    def mode(self, params: Tensor, mask: Tensor | None) -> Tensor:
        """The means."""
        return self._shaped(params.chunk(2, -1)[0])

    def log_prob(self, params: Tensor, action: Tensor, mask: Tensor | None) -> Tensor:
        """Log-density of `action`, `[...]`."""
        return _log_prob(params, self._flat(action))

    def entropy(self, params: Tensor, mask: Tensor | None) -> Tensor:
        """Differential entropy `[...]`: zero is no border, it falls with the deviations."""
        return (_split(params)[1] + (0.5 + HALF_LOG_TAU)).sum(-1)

    def evaluate(
        self, params: Tensor, action: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """`log_prob` and `entropy`."""
        return self.log_prob(params, action, mask), self.entropy(params, mask)

    def kl(self, p: Tensor, q: Tensor, mask: Tensor | None) -> Tensor:
        """KL(p, q), `[...]`; zero where they are the same. Squashing both does not change it."""
        (p_mean, p_log_std), (q_mean, q_log_std) = _split(p), _split(q)
        log_ratio = p_log_std - q_log_std
        apart = (p_mean - q_mean) * (-q_log_std).exp()
        return (0.5 * ((2 * log_ratio).exp() + apart**2 - 1) - log_ratio).sum(-1)

    def _shaped(self, x: Tensor) -> Tensor:
        return x if len(self.shape) == 1 else x.reshape(*x.shape[:-1], *self.shape)

    def _flat(self, action: Tensor) -> Tensor:
        if len(self.shape) == 1:
            return action
        return action.reshape(*action.shape[: action.dim() - len(self.shape)], self.params // 2)


@dataclass(frozen=True)
class SquashedGaussian(Gaussian):
    """A Gaussian through tanh (arXiv:1801.01290, appendix C); actions are inside (-1, 1)."""

    def sample(self, params: Tensor, mask: Tensor | None, generator: Generator) -> Tensor:
        """Draw without a gradient."""
        return self._shaped(_inside(_draw(params.detach(), generator).tanh()))

    def sample_with_log_prob(self, params: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """What `noise` draws, a differentiable function of the parameters, and its log-density."""
        x, log_prob = _drawn_with_log_prob(params, noise)
        return self._shaped(_inside(x.tanh())), log_prob - _log_slope(x)

    def mode(self, params: Tensor, mask: Tensor | None) -> Tensor:
        """Where the Gaussian is likeliest, squashed."""
        return self._shaped(_inside(params.chunk(2, -1)[0].tanh()))

    def log_prob(self, params: Tensor, action: Tensor, mask: Tensor | None) -> Tensor:
        """Log-density of `action`, `[...]`; an action on the border counts as just inside it."""
        x = _inside(self._flat(action)).atanh()
        return _log_prob(params, x) - _log_slope(x)

    def entropy(self, params: Tensor, mask: Tensor | None) -> Tensor:
        """Refused: it has no closed form, and the Gaussian's own is another number."""
        raise UsageError(
            "entropy of a squashed Gaussian: it has no closed form; use the mean of -log_prob "
            "from sample_with_log_prob, or a Gaussian that is not squashed"
        )


def _split(params: Tensor) -> tuple[Tensor, Tensor]:
    mean, log_std = params.chunk(2, -1)
    return mean, log_std.clamp(*LOG_STD)


def _noise(shape: Shape, generator: Generator) -> Tensor:
    return torch.empty(shape, device=generator.device).normal_(generator=generator)


def _draw(params: Tensor, generator: Generator) -> Tensor:
    mean, log_std = _split(params)
    return torch.addcmul(mean, log_std.exp(), _noise(mean.shape, generator))


def _drawn_with_log_prob(params: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    # From the noise itself: recovering it from the action would lose it where deviations are small.
    mean, log_std = _split(params)
    return torch.addcmul(mean, log_std.exp(), noise), _log_density(noise, log_std)


def _log_prob(params: Tensor, x: Tensor) -> Tensor:
    mean, log_std = _split(params)
    return _log_density((x - mean) * (-log_std).exp(), log_std)


def _log_density(noise: Tensor, log_std: Tensor) -> Tensor:
    """Log of the normal density, summed: minus noise^2 / 2 + log std + log(2 pi) / 2."""
    return -(torch.addcmul(log_std, noise, noise, value=0.5) + HALF_LOG_TAU).sum(-1)


def _log_slope(x: Tensor) -> Tensor:
    """Log of the slope of tanh, 1 - tanh(x)^2, summed; never the log of a rounded zero."""
    return 2 * (math.log(2) - x - F.softplus(-2 * x)).sum(-1)


def _inside(action: Tensor) -> Tensor:
    # A float tanh reaches one from about nine on, where atanh would be infinite.
    border = 1 - torch.finfo(action.dtype).eps
    return action.clamp(-border, border)
