"""Normal distributions over continuous actions; parameters are means, then log standard deviations.

Masks are for discrete actions and are not looked at here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Generator, Tensor

from operant.core.spaces import Shape
from operant.core.tree import Array

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
        return self._shaped(draw(params.detach(), generator))

    def mode(self, params: Tensor, mask: Tensor | None) -> Tensor:
        """The means."""
        return self._shaped(params.chunk(2, -1)[0])

    def log_prob(self, params: Tensor, action: Tensor, mask: Tensor | None) -> Tensor:
        """Log-density of `action`, `[...]`."""
        return log_prob_of(params, self._flat(action))

    def entropy(self, params: Tensor, mask: Tensor | None) -> Tensor:
        """Differential entropy `[...]`: zero is no border, it falls with the deviations."""
        return (split(params)[1] + (0.5 + HALF_LOG_TAU)).sum(-1)

    def evaluate(
        self, params: Tensor, action: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """`log_prob` and `entropy`."""
        return self.log_prob(params, action, mask), self.entropy(params, mask)

    def kl(self, p: Tensor, q: Tensor, mask: Tensor | None) -> Tensor:
        """KL(p, q), `[...]`; zero where they are the same. Squashing both does not change it."""
        (p_mean, p_log_std), (q_mean, q_log_std) = split(p), split(q)
        log_ratio = p_log_std - q_log_std
        apart = (p_mean - q_mean) * (-q_log_std).exp()
        return (0.5 * ((2 * log_ratio).exp() + apart**2 - 1) - log_ratio).sum(-1)

    def sample_numpy(
        self, params: Array, generator: Generator, rows: tuple[int, int, int], log_prob: bool
    ) -> tuple[Array, Array | None]:
        """`sample` for rows `start` to `stop` of `total`, and the log-probability if wanted."""
        start, stop, total = rows
        size = params.shape[1] // 2
        log_std = params[:, size:].clip(*LOG_STD)
        noise = torch.empty(total, size).normal_(generator=generator).numpy()[start:stop]
        action = (params[:, :size] + np.exp(log_std) * noise).reshape(-1, *self.shape)
        if not log_prob:
            return action, None
        return action, -(0.5 * noise * noise + log_std + np.float32(HALF_LOG_TAU)).sum(1)

    def _shaped(self, x: Tensor) -> Tensor:
        return x if len(self.shape) == 1 else x.reshape(*x.shape[:-1], *self.shape)

    def _flat(self, action: Tensor) -> Tensor:
        if len(self.shape) == 1:
            return action
        return action.reshape(*action.shape[: action.dim() - len(self.shape)], self.params // 2)


def split(params: Tensor) -> tuple[Tensor, Tensor]:
    mean, log_std = params.chunk(2, -1)
    return mean, log_std.clamp(*LOG_STD)


def standard_normal(shape: Shape, generator: Generator) -> Tensor:
    return torch.empty(shape, device=generator.device).normal_(generator=generator)


def draw(params: Tensor, generator: Generator) -> Tensor:
    mean, log_std = split(params)
    return torch.addcmul(mean, log_std.exp(), standard_normal(mean.shape, generator))


def log_prob_of(params: Tensor, x: Tensor) -> Tensor:
    mean, log_std = split(params)
    return log_density((x - mean) * (-log_std).exp(), log_std)


def log_density(noise: Tensor, log_std: Tensor) -> Tensor:
    """Log of the normal density, summed: minus noise^2 / 2 + log std + log(2 pi) / 2."""
    return -(torch.addcmul(log_std, noise, noise, value=0.5) + HALF_LOG_TAU).sum(-1)
