"""Observations in standard deviations from their running mean."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from operant.core.experience import Tensors
from operant.core.running import RunningStatistics
from operant.core.spaces import Shape
from operant.networks.submodule import module_dict


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
