"""Draws from distributions over the few rows that acting has, in NumPy: see `networks.few`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Generator

from operant.core.experience import Arrays
from operant.core.tree import Array
from operant.ops.categorical import Categorical
from operant.ops.distribution import ActionDistribution, Part
from operant.ops.gaussian import HALF_LOG_TAU, LOG_STD, Gaussian, SquashedGaussian

Bounds = tuple[int, int, int]  # the first row, the one after the last, and rows of the whole batch


BORDER = 1 - np.finfo(np.float32).eps  # where squashed actions end


def drawable(distribution: ActionDistribution) -> bool:
    """Whether every part can be drawn here."""
    kinds = (Categorical, Gaussian, SquashedGaussian)
    return all(type(part) in kinds for part in distribution.parts.values())


def draw(
    distribution: ActionDistribution,
    params: Mapping[str, Array],
    generator: Generator,
    rows: Bounds,
) -> Arrays:
    """Actions by name.

    What is drawn, for all rows of the batch, is what the parts themselves would draw.
    """
    return {
        name: _race(params[name], generator, rows)
        if isinstance(part, Categorical)
        else _shaped(part, _normal(params[name], generator, rows)[0])
        for name, part in distribution.parts.items()
    }


def sample(
    distribution: ActionDistribution,
    params: Mapping[str, Array],
    generator: Generator,
    rows: Bounds,
) -> tuple[Arrays, Array]:
    """`draw` and the log-probability `[B]` of the whole; nothing may be squashed."""
    actions: Arrays = {}
    total = np.zeros(1, np.float32)
    for name, part in distribution.parts.items():
        if isinstance(part, Categorical):
            actions[name] = _race(params[name], generator, rows)
            total = total + _chosen(params[name], actions[name])
        else:
            assert not isinstance(part, SquashedGaussian)
            x, noise, log_std = _normal(params[name], generator, rows)
            actions[name] = _shaped(part, x)
            total = total - (0.5 * noise * noise + log_std + np.float32(HALF_LOG_TAU)).sum(1)
    return actions, total


def _race(logits: Array, generator: Generator, rows: Bounds) -> Array:
    """As `categorical._race`: the first of exponential clocks with rates exp(logits) to ring."""
    start, stop, total = rows
    clock = torch.empty(total, logits.shape[1]).exponential_(generator=generator)
    action: Array = (logits - np.log(clock.numpy()[start:stop])).argmax(1)
    return action


def _chosen(logits: Array, action: Array) -> Array:
    """Log-probability of the choices made."""
    # The logarithm of a sum of exponentials, one by one, so that none is too large.
    log_prob: Array = logits[np.arange(len(action)), action] - np.logaddexp.reduce(logits, 1)
    return log_prob


def _normal(params: Array, generator: Generator, rows: Bounds) -> tuple[Array, Array, Array]:
    """Independent normals, and the noise and log standard deviations behind them."""
    start, stop, total = rows
    size = params.shape[1] // 2
    log_std = params[:, size:].clip(*LOG_STD)
    noise = torch.empty(total, size).normal_(generator=generator).numpy()[start:stop]
    return params[:, :size] + np.exp(log_std) * noise, noise, log_std


def _shaped(part: Part, x: Array) -> Array:
    """What a Gaussian makes of its normals."""
    assert isinstance(part, Gaussian)
    if isinstance(part, SquashedGaussian):
        x = np.tanh(x).clip(-BORDER, BORDER)
    return x.reshape(-1, *part.shape)
