"""A user's criterion, as agents call it."""

from __future__ import annotations

from torch import Tensor

from operant.core.errors import UsageError
from operant.ops.value import Criterion


def on_rows(criterion: Criterion) -> Criterion:
    """The criterion on columns `[N, 1]`, whatever the shape of predictions and targets."""

    def loss(prediction: Tensor, target: Tensor) -> Tensor:
        found = criterion(prediction.reshape(-1, 1), target.reshape(-1, 1))
        return found.reshape(prediction.shape) if found.dim() else found

    return loss


def elementwise(criterion: Criterion) -> Criterion:
    """The criterion told to give a loss for each element, which priorities and weights need."""
    if getattr(criterion, "reduction", None) is None:
        raise UsageError(
            f"criterion = {criterion!r}: has no `reduction` to set to 'none'; expected one that "
            f"gives a loss for each row, such as nn.MSELoss"
        )
    criterion.reduction = "none"  # type: ignore[attr-defined]  # it was there above
    return criterion
