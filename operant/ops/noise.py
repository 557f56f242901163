"""Noise that a user adds to actions, by the parameters that seed 003 gives it.

Every parameter is a number, or a tensor with one for each dimension of an action. Draws come from
torch's global generator, as those of a user's own modules do.
"""

from __future__ import annotations

import torch
from torch import Tensor

Parameter = float | Tensor


def uniform(like: Tensor, low: Parameter, high: Parameter) -> Tensor:
    """ε ~ U(low, high)."""
    return low + (high - low) * torch.rand_like(like)


def normal(like: Tensor, mean: Parameter, std: Parameter) -> Tensor:
    """ε ~ N(mean, std²)."""
    return mean + std * torch.randn_like(like)


def clipped_normal(
    like: Tensor, mean: Parameter, std: Parameter, low: Parameter, high: Parameter
) -> Tensor:
    """clip(ε, low, high), ε ~ N(mean, std²)."""
    drawn = normal(like, mean, std)
    return torch.minimum(torch.maximum(drawn, _tensor(low, like)), _tensor(high, like))


def ornstein_uhlenbeck(  # the parameters of the process
    noise: Tensor,
    mu: Parameter = 0.0,
    sigma: Parameter = 0.2,
    theta: Parameter = 0.15,
    dt: float = 1.0,
) -> Tensor:
    """The noise after this one: x ← x + θ (μ − x) dt + σ √dt N(0, 1)."""
    drift: Tensor = theta * (mu - noise) * dt
    shock: Tensor = sigma * dt**0.5 * torch.randn_like(noise)
    return noise + drift + shock


def prefer(probability: Tensor, chosen: float) -> Tensor:
    """Actions `[B, 1]` row by row: the most probable with probability `chosen`, else drawn."""
    best = probability.argmax(-1, keepdim=True)
    drawn = torch.multinomial(probability, 1)
    return torch.where(torch.rand(best.shape, device=best.device) < chosen, best, drawn)


def _tensor(parameter: Parameter, like: Tensor) -> Tensor:
    return torch.as_tensor(parameter, dtype=like.dtype, device=like.device)
