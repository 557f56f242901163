"""Optimizers that a user chose, behind the gradient seam of the agents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from operant.agents.optimizer import Gradients, Optimizer, clip_gradients
from operant.core.experience import Tensors

Backward = Callable[[Tensor], object]


class UserOptimizer(Optimizer):
    """One or more optimizers of `torch.optim` as one; each keeps its learning rate to itself.

    An optimizer whose parameters a loss does not touch takes no step, and each has its gradient
    clipped by itself. `backward` is called with each loss.
    """

    def __init__(
        self, optimizers: Sequence[torch.optim.Optimizer], max_grad_norm: float, backward: Backward
    ) -> None:
        self.optimizers, self.max_grad_norm, self.backward = optimizers, max_grad_norm, backward
        groups = [[p for g in own.param_groups for p in g["params"]] for own in optimizers]
        self.parameters: list[nn.Parameter] = [p for group in groups for p in group]
        self.members = list(zip(optimizers, groups, strict=True))

    def differentiate(self, loss: Tensor) -> Gradients:
        """The gradient of `loss`, by the user's backward function."""
        for parameter in self.parameters:
            parameter.grad = None
        self.backward(loss)
        return [parameter.grad for parameter in self.parameters]

    def clip(self, gradients: Gradients) -> Tensors:
        """Shorten the gradient of each optimizer to `max_grad_norm`."""
        if self.max_grad_norm is None or self.max_grad_norm == float("inf"):
            return {}
        for _, own in self.members:
            found = [p.grad for p in own if p.grad is not None]
            if found:
                clip_gradients(found, self.max_grad_norm)
        return {}

    def step(self, gradients: Gradients, metrics: Tensors, steps: int) -> Tensors:
        """Let every optimizer step whose parameters have a gradient."""
        for optimizer, own in self.members:
            if any(p.grad is not None for p in own):
                optimizer.step()
        return metrics

    def apply(self, gradients: Gradients, steps: int) -> None:
        """Move the parameters along gradients that are known."""
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            parameter.grad = gradient
        self.step(gradients, {}, steps)

    def state_dict(self) -> dict[str, Any]:
        """What the optimizers keep."""
        return {str(i): own.state_dict() for i, own in enumerate(self.optimizers)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave."""
        for i, own in enumerate(self.optimizers):
            own.load_state_dict(state[str(i)])
