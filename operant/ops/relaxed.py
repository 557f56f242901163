"""Discrete actions that a gradient flows through: the Gumbel-softmax trick (arXiv:1611.01144).

An action of several discrete parts is the concatenation of one one-hot vector a part; `sizes` says
how many choices each part has, and a mask has an entry for each choice.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Generator, Tensor
from torch.nn import functional as F

LOWEST = 1e-20  # keeps the logarithm of a uniform number finite


def gumbel_noise(shape: tuple[int, ...], generator: Generator) -> Tensor:
    """g = -log(-log u), u uniform in [0, 1)."""
    u = torch.rand(shape, generator=generator, device=generator.device)
    return -torch.log(-torch.log(u + LOWEST) + LOWEST)


def gumbel_softmax(
    logits: Tensor, noise: Tensor, sizes: Sequence[int], mask: Tensor | None = None
) -> Tensor:
    """One-hot of argmax(l + g) with the gradient of softmax(l + g), part by part.

    For g of `gumbel_noise` that is a draw of the policy softmax(l); for g = 0 its mode.
    """
    shifted = logits + noise
    if mask is not None:
        shifted = shifted.masked_fill(~mask, -torch.inf)
    return torch.cat([_straight_through(x) for x in shifted.split(list(sizes), -1)], -1)


def _straight_through(x: Tensor) -> Tensor:
    soft = x.softmax(-1)
    hard = F.one_hot(x.argmax(-1), x.shape[-1]).to(soft.dtype)
    return hard + soft - soft.detach()


def one_hot(action: Tensor, sizes: Sequence[int]) -> Tensor:
    """Choices `[..., parts]` as one-hot vectors `[..., sum of sizes]`."""
    parts = action.long().unbind(-1)
    hot = [F.one_hot(x, size) for x, size in zip(parts, sizes, strict=True)]
    return torch.cat(hot, -1).float()


def choices_of(hot: Tensor, sizes: Sequence[int]) -> Tensor:
    """The inverse of `one_hot`."""
    return torch.stack([x.argmax(-1) for x in hot.split(list(sizes), -1)], -1)
