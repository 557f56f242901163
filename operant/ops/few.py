"""Draws from distributions over the few rows that acting has, in NumPy: see `networks.few`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Generator

from operant.core.experience import Arrays
from operant.core.tree import Array
from operant.ops.categorical import Categorical
from operant.ops.distribution import ActionDistribution
from operant.ops.gaussian import HALF_LOG_TAU, LOG_STD, Gaussian

Bounds = tuple[int, int, int]  # the first row, the one after the last, and rows of the whole batch


def drawable(distribution: ActionDistribution) -> bool:
    """Whether every part can be drawn here."""
    return all(type(part) in (Categorical, Gaussian) for part in distribution.parts.values())


def sample(
    distribution: ActionDistribution,
    params: Mapping[str, Array],
    generator: Generator,
    rows: Bounds,
) -> tuple[Arrays, Array]:
    """Actions by name and the log-probability `[B]` of the whole.

    What is drawn, for all rows of the batch, is what the parts themselves would draw.
    """
    actions: Arrays = {}
    total = np.zeros(1, np.float32)
    for name, part in distribution.parts.items():
        if isinstance(part, Categorical):
            actions[name], log_prob = _race(params[name], generator, rows)
        else:
            actions[name], log_prob = _normal(params[name], generator, rows)
            assert isinstance(part, Gaussian)
            actions[name] = actions[name].reshape(-1, *part.shape)
        total = total + log_prob
    return actions, total


def _race(logits: Array, generator: Generator, rows: Bounds) -> tuple[Array, Array]:
    """As `categorical._race`: the first of exponential clocks with rates exp(logits) to ring."""
    start, stop, total = rows
    clock = torch.empty(total, logits.shape[1]).exponential_(generator=generator)
    action = (logits - np.log(clock.numpy()[start:stop])).argmax(1)
    shifted = logits - logits.max(1, keepdims=True)
    chosen = shifted[np.arange(len(action)), action]
    return action, chosen - np.log(np.exp(shifted).sum(1))


def _normal(params: Array, generator: Generator, rows: Bounds) -> tuple[Array, Array]:
    """Independent normals: means, then log standard deviations."""
    start, stop, total = rows
    size = params.shape[1] // 2
    log_std = params[:, size:].clip(*LOG_STD)
    noise = torch.empty(total, size).normal_(generator=generator).numpy()[start:stop]
    action = params[:, :size] + np.exp(log_std) * noise
    return action, -(0.5 * noise * noise + log_std + np.float32(HALF_LOG_TAU)).sum(1)
