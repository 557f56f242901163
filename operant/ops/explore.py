"""Acting at random: how an agent tries what it would not choose."""

from __future__ import annotations

import torch
from gymnasium import spaces as gs
from torch import Generator, Tensor

from operant.core.experience import Tensors
from operant.core.spaces import Shape, Space
from operant.ops.distribution import distribution_for


def epsilon_greedy(
    greedy: Tensors, uniform: Tensors, epsilon: float | Tensor, generator: Generator
) -> Tensors:
    """`uniform` with probability `epsilon`, else `greedy`: one coin a row, for all its parts.

    Zero never explores. A tensor `[B]` gives each row its own (arXiv:1803.00933, section 4.1).
    """
    some = next(iter(uniform.values()))
    coin = torch.rand(some.shape[0], generator=generator, device=some.device) < epsilon
    return {
        name: torch.where(coin.view(-1, *(1,) * (x.dim() - 1)), x, greedy[name].reshape(x.shape))
        for name, x in uniform.items()
    }


def uniform(
    action_spaces: dict[str, Space],
    batch: int,
    masks: Tensors,
    generator: Generator,
    device: torch.device | str,
) -> Tensors:
    """Any allowed action with the same probability; a Box in [-1, 1], also one without bounds."""
    parts = distribution_for(action_spaces).parts
    actions = {}
    for name, space in action_spaces.items():
        if isinstance(space, gs.Box):
            shape = (batch, *space.shape)
            actions[name] = 2 * torch.rand(shape, generator=generator, device=device) - 1
        else:
            alike = torch.zeros(batch, parts[name].params, device=device)
            actions[name] = parts[name].sample(alike, masks.get(name), generator)
    return actions


def normal_noise(shape: Shape, scale: float | Tensor, generator: Generator) -> Tensor:
    """ε ~ N(0, σ²), σ = `scale`; a tensor gives each dimension of an action its own."""
    return torch.randn(shape, generator=generator, device=generator.device) * scale


def clipped_normal_noise(
    shape: Shape, scale: float | Tensor, clip: float, generator: Generator
) -> Tensor:
    """clip(ε, -c, c) with ε ~ N(0, σ²) (arXiv:1802.09477, eq. 14)."""
    return normal_noise(shape, scale, generator).clamp(-clip, clip)


def uniform_noise(shape: Shape, scale: float | Tensor, generator: Generator) -> Tensor:
    """ε ~ U(-s, s), s = `scale`; a tensor gives each dimension of an action its own."""
    return (2 * torch.rand(shape, generator=generator, device=generator.device) - 1) * scale


def ornstein_uhlenbeck(
    noise: Tensor, scale: float | Tensor, theta: float, generator: Generator
) -> Tensor:
    """The noise after this one, x ← x - θ x + σ N(0, 1) (arXiv:1509.02971, section 7).

    Zero is where an episode begins. With θ one it is Gaussian, with θ zero a random walk.
    """
    return noise - theta * noise + normal_noise(tuple(noise.shape), scale, generator)
