"""Observations in standard deviations from their running mean."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from operant.core.experience import Tensors
from operant.core.spaces import Shape
from operant.networks.submodule import module_dict


class RunningStatistics(nn.Module):
    """Mean and variance of everything seen, merged batch by batch (Chan et al., 1979).

    Buffers, not parameters: they travel with the network in every checkpoint.
    """

    mean: Tensor
    variance: Tensor
    count: Tensor

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(shape))
        self.register_buffer("variance", torch.ones(shape))
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))

    @torch.no_grad()
    def update(self, batch: Tensor) -> None:
        """Take in a batch whose leading axis runs over samples."""
        size = batch.shape[0]
        if size == 0:
            return
        batch = batch.to(self.mean.dtype)
        total = float(self.count) + size
        delta = batch.mean(0) - self.mean
        variance = batch.var(0, unbiased=False)
        share = size / total
        self.variance.mul_(1 - share).add_(variance * share + delta**2 * share * (1 - share))
        self.mean.add_(delta * share)
        self.count.fill_(total)

    def normalize(self, x: Tensor, limit: float = 10.0) -> Tensor:
        """`x` in standard deviations from the mean, cut at `limit`."""
        return ((x - self.mean) / (self.variance + 1e-8).sqrt()).clamp(-limit, limit)


class Normalizer(nn.Module):
    """Normalises the observations named in `shapes` and passes on the others.

    Statistics change only when told so by `observe`: acting and learning see the same numbers.
    """

    def __init__(self, shapes: Mapping[str, Shape]) -> None:
        super().__init__()
        named = {name: RunningStatistics(shape) for name, shape in shapes.items()}
        self.statistics = module_dict(named)
        self._named = tuple(named.items())

    def forward(self, observation: Tensors) -> Tensors:
        """`observation` `[..., *shape]` with the named ones normalised."""
        return observation | {name: s.normalize(observation[name]) for name, s in self._named}

    def observe(self, observation: Tensors, valid: Tensor | None = None) -> None:
        """Take in the rows of `[B, ...]` or `[T, B, ...]` where `valid` is true."""
        for name, statistics in self._named:
            x = observation[name]
            shape = statistics.mean.shape
            statistics.update(x.reshape(-1, *shape) if valid is None else x[valid])
