"""Acting at random: how an agent tries what it would not choose."""

from __future__ import annotations

import torch
from gymnasium import spaces as gs
from torch import Generator, Tensor

from operant.core.experience import Tensors
from operant.core.spaces import Space
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
