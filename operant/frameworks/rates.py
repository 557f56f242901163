"""Learning rates by step, for the schedulers of torch.optim."""

from __future__ import annotations

import logging
import warnings
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR, LRScheduler

from operant.core.errors import UsageError

SMALL = 0.1  # a rate, not a factor


class RateFunction:
    """The learning rate at a step: that of the last row of `table` at or before the step."""

    def __init__(self, table: Sequence[tuple[int, float]], logger: logging.Logger | None) -> None:
        self.steps, self.rates = [int(step) for step, _ in table], [float(lr) for _, lr in table]
        self.logger, self.told = logger, -1

    def __call__(self, step: int) -> float:
        place = max(0, bisect_right(self.steps, step) - 1)
        if self.logger is not None and place != self.told:
            self.logger.info("learning rate %g from step %d on", self.rates[place], step)
        self.told = place
        return self.rates[place]


def gen_learning_rate_func(
    lr_map: Sequence[tuple[int, float]], logger: logging.Logger | None = None
) -> Callable[[int], float]:
    """A learning rate that is constant from each row `(step, rate)` up to the next one's step."""
    steps = [step for step, _ in lr_map]
    if not lr_map or steps != sorted(set(steps)):
        raise UsageError(
            f"lr_map = {lr_map!r}: expected rows (step, rate) whose steps increase, such as "
            f"[(0, 1e-3), (200_000, 3e-4)]"
        )
    return RateFunction(lr_map, logger)


class AbsoluteLR(LRScheduler):
    """Sets every learning rate to `lr_lambda(step)`, where LambdaLR would multiply by it."""

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Callable[[int], float], last_epoch: int = -1
    ) -> None:
        self.lr_lambda = lr_lambda
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rate of each group of parameters at this step."""
        return [self.lr_lambda(self.last_epoch)] * len(self.optimizer.param_groups)


def warn_of_products(schedulers: Sequence[LRScheduler]) -> None:
    """Warn where LambdaLR multiplies a small learning rate by another one."""
    for scheduler in schedulers:
        if not isinstance(scheduler, LambdaLR):
            continue
        for base, factor in zip(scheduler.base_lrs, scheduler.lr_lambdas, strict=True):
            rate, by = float(base), float(factor(0))
            if rate < SMALL and 0 < by < SMALL:
                warnings.warn(
                    f"LambdaLR multiplies learning_rate = {rate:g} by {by:g}, which gives "
                    f"{rate * by:g}; use operant.frameworks.AbsoluteLR for absolute rates, or "
                    f"learning_rate=1.0",
                    stacklevel=3,
                )
