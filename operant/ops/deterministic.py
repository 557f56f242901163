"""Deterministic policies: bounded actions, and the smoothing of those in targets (DDPG, TD3)."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Generator, Tensor

from operant.core.experience import Tensors
from operant.core.spaces import Shape
from operant.ops.distribution import POLICY
from operant.ops.explore import clipped_normal_noise


def squashed(out: Tensors, shapes: Mapping[str, Shape]) -> Tensors:
    """Actions μ(s) = tanh of a network's outputs, `[..., *shape]` by name, within [-1, 1]."""
    found = {name: out[POLICY + name].tanh() for name in shapes}
    return {name: x.reshape(*x.shape[:-1], *shapes[name]) for name, x in found.items()}


def smoothed(action: Tensor, scale: float, clip: float, generator: Generator) -> Tensor:
    """μ'(s') + clip(ε, -c, c), ε ~ N(0, σ), within [-1, 1] (arXiv:1802.09477, eq. 14)."""
    noise = clipped_normal_noise(tuple(action.shape), scale, clip, generator)
    return (action + noise).clamp(-1.0, 1.0)
