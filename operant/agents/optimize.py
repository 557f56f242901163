"""What every learner does with a loss: one gradient step, target networks, averaged metrics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from functools import reduce
from typing import Any

import torch
from torch import Tensor, nn

from operant.core.experience import Metrics, Tensors
from operant.core.protocols import Network
from operant.core.schedule import Schedule
from operant.core.state import restore, state_of

Gradients = Sequence[Tensor | None]  # one a parameter; none: the loss does not touch it


class Optimizer:
    """Adam (arXiv:1412.6980) with a learning-rate schedule and a bound on the gradient's norm.

    A bound of zero is none, and of None none either, nor is the norm then measured.
    `torch.optim.Adam(fused=True)` gives the same bits; this is its kernel without its hooks, and
    without the import of torch's compiler.
    """

    betas = (0.9, 0.999)

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        lr: Schedule,
        max_grad_norm: float | None = 0.0,
        eps: float = 1e-8,
    ) -> None:
        self.parameters = list(parameters)
        self.lr, self.max_grad_norm, self.eps = lr, max_grad_norm, eps
        self.means = [torch.zeros_like(p) for p in self.parameters]  # of the gradients
        self.squares = [torch.zeros_like(p) for p in self.parameters]  # their means
        self.ages = torch.zeros(len(self.parameters), device=self.parameters[0].device)
        self._ages = self.ages.unbind()  # gradients seen, by parameter
        self.count = 0  # gradient steps taken

    def gradient(self, loss: Tensor) -> tuple[Gradients, Tensor]:
        """The bounded gradient of `loss`, and the norm it had, zero if that is not measured."""
        found = torch.autograd.grad(loss, self.parameters, allow_unused=True)
        gradients = [laid_as(*pair) for pair in zip(self.parameters, found, strict=True)]
        if self.max_grad_norm is None:
            return gradients, torch.zeros(())
        return gradients, bound([x for x in gradients if x is not None], self.max_grad_norm)

    @torch.no_grad()
    def follow(self, gradients: Gradients, steps: int) -> None:
        """Follow these gradients, as long as they are, at the rate due after `steps`."""
        # Those of a compiled program need not lie as it was told.
        gradients = [laid_as(*pair) for pair in zip(self.parameters, gradients, strict=True)]
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            parameter.grad = gradient  # for whoever looks
        columns: Any = (self.parameters, gradients, self.means, self.squares, self._ages)
        touched = [gradient is not None for gradient in gradients]
        if all(touched):
            self.ages += 1
        else:  # what the loss does not touch stays as it is
            self.ages += torch.tensor(touched, device=self.ages.device)
            rows = zip(*columns, strict=True)
            columns = zip(*(row for row in rows if row[1] is not None), strict=True)
        parameters, found, means, squares, ages = columns
        torch._fused_adam_(
            parameters,
            found,
            means,
            squares,
            [],
            ages,
            lr=self.lr(steps),
            beta1=self.betas[0],
            beta2=self.betas[1],
            weight_decay=0.0,
            eps=self.eps,
            amsgrad=False,
            maximize=False,
        )
        self.count += 1

    def state_dict(self) -> dict[str, Any]:
        """Adam's moments, and the count."""
        return state_of(self, *STATE)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave."""
        restore(self, state, *STATE)


STATE = ("means", "squares", "ages", "count")


def laid_as(parameter: Tensor, gradient: Tensor | None) -> Tensor | None:
    """The gradient in its parameter's layout: Adam's kernel takes numbers as they lie in memory."""
    if gradient is None or gradient.stride() == parameter.stride():
        return gradient
    return torch.empty_like(parameter).copy_(gradient)


@torch.no_grad()
def bound(gradients: list[Tensor], most: float) -> Tensor:
    """Shorten gradients to the norm `most`, if they are longer and it is not zero; their norm."""
    norm: Tensor = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
    if most:
        torch._foreach_mul_(gradients, (most / (norm + 1e-6)).clamp(max=1.0))
    return norm


class Target:
    """A copy of a network that follows it at a distance, and that no gradient enters."""

    def __init__(self, source: Network) -> None:
        self.network = deepcopy(source).requires_grad_(False)
        # Collected once: walking the modules would cost more than the arithmetic.
        self._weights = tuple(self.network.parameters()), tuple(source.parameters())
        self._buffers = tuple(zip(self.network.buffers(), source.buffers(), strict=True))

    @torch.no_grad()
    def follow(self, tau: float) -> None:
        """own ← own + tau (source − own); tau one copies. Buffers are copied."""
        torch._foreach_lerp_(*self._weights, tau)
        for own, other in self._buffers:
            own.copy_(other)

    def state_dict(self) -> dict[str, Any]:
        """The copy's weights."""
        return self.network.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put the copy's weights back."""
        self.network.load_state_dict(state)


def detached(metrics: Tensors) -> Tensors:
    """The same numbers without the way they came about."""
    return {name: x.detach() for name, x in metrics.items()}


def total(losses: Tensors) -> Tensor:
    """The sum of all losses."""
    return reduce(torch.add, losses.values())


def averaged(parts: Sequence[Tensors]) -> Metrics:
    """The mean of each named metric; numbers leave the device once."""
    if not parts:
        return {}
    names = list(parts[0])
    table = torch.stack([part[name] for part in parts for name in names]).view(len(parts), -1)
    return dict(zip(names, table.mean(0).tolist(), strict=True))


def updates_due(stored: int, config: Any, done: int) -> int:
    """Gradient steps owed for the `stored` steps beyond those that learning waits for."""
    return max(0, int((stored - config.learning_starts) * config.updates_per_step) - done)


@torch.no_grad()
def surprise(error: Tensor, valid: Tensor | None) -> Tensor:
    """How wrong each window was: its mean `error` `[B]`, none negative, over what counts."""
    return error.mean(0) if valid is None else (error * valid).sum(0) / valid.sum(0)


def counted(batch: Any, window: int) -> Tensor | None:
    """Which of a window's first steps count; None: all, as a memory's windows begin with one."""
    return None if window == 1 else batch.valid[:window]
