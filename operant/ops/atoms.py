"""Distributions of returns over atoms: equidistant values from `low` to `high`.

Probabilities are `[..., atoms]`, or their logarithms where that is said.
"""

from __future__ import annotations

import torch
from torch import Tensor


def support(low: float, high: float, like: Tensor) -> Tensor:
    """The values z_i `[atoms]` of the atoms of `like` `[..., atoms]`."""
    return torch.linspace(low, high, like.shape[-1], device=like.device, dtype=like.dtype)


def mean(log_prob: Tensor, low: float, high: float) -> Tensor:
    """The expected return Σ_i z_i p_i, `[...]`."""
    return (log_prob.exp() * support(low, high, log_prob)).sum(-1)


def project(probability: Tensor, value: Tensor, low: float, high: float) -> Tensor:
    """Probabilities at any `value` `[..., atoms]` moved to the atoms (arXiv:1707.06887, eq. 7).

    m_i = Σ_j p_j max(0, 1 − |clip(v_j, low, high) − z_i| / Δz): each value gives its probability
    to the two atoms beside it, by how near they are, and all of it to an atom that it meets. What
    lies outside counts as lying at the border, so that the sum stays one.
    """
    atoms = probability.shape[-1]
    place = (value.clamp(low, high) - low) * ((atoms - 1) / (high - low))
    index = torch.arange(atoms, device=value.device, dtype=value.dtype)
    share = (1 - (place.unsqueeze(-1) - index).abs()).clamp(min=0)  # [..., from, to]
    return (probability.unsqueeze(-2) @ share).squeeze(-2)


def cross_entropy(target: Tensor, log_prob: Tensor) -> Tensor:
    """−Σ_i m_i log p_i, `[...]`: its gradient is that of KL(m, p)."""
    return -(target * log_prob).sum(-1)


def kl(target: Tensor, log_prob: Tensor) -> Tensor:
    """KL(m, p) = Σ_i m_i (log m_i − log p_i), `[...]`; atoms without probability add nothing."""
    return cross_entropy(target, log_prob) + torch.xlogy(target, target).sum(-1)
