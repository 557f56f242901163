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


class Optimizer:
    """Adam with a learning-rate schedule and a bound on the gradient's norm."""

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        lr: Schedule,
        max_grad_norm: float = 0.0,
        eps: float = 1e-8,
    ) -> None:
        self.parameters = list(parameters)
        self.lr, self.max_grad_norm = lr, max_grad_norm
        self.adam = torch.optim.Adam(self.parameters, lr=lr(0), eps=eps, fused=True)
        self.count = 0  # gradient steps taken

    def step(self, loss: Tensor, steps: int) -> Tensor:
        """Follow the gradient of `loss` at the rate due after `steps`; the gradient's norm."""
        self.adam.zero_grad(set_to_none=True)
        loss.backward()
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        norm: Tensor = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
        if self.max_grad_norm:
            torch._foreach_mul_(gradients, (self.max_grad_norm / (norm + 1e-6)).clamp(max=1.0))
        self.adam.param_groups[0]["lr"] = self.lr(steps)
        self.adam.step()
        self.count += 1
        return norm

    def freeze(self, frozen: bool = True) -> None:
        """Keep gradients out of the parameters, or let them in again."""
        for parameter in self.parameters:
            parameter.requires_grad_(not frozen)

    def state_dict(self) -> dict[str, Any]:
        """Adam's moments, and the count."""
        return state_of(self, "adam", "count")

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave."""
        restore(self, deepcopy(state), "adam", "count")  # Adam would go on writing into it


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


def total(losses: Tensors) -> Tensor:
    """The sum of all losses."""
    return reduce(torch.add, losses.values())


def averaged(parts: Sequence[Tensors]) -> Metrics:
    """The mean of each named metric; numbers leave the device once."""
    if not parts:
        return {}
    names = list(parts[0])
    table = torch.stack([torch.stack([part[name].detach() for name in names]) for part in parts])
    return dict(zip(names, table.mean(0).tolist(), strict=True))


def updates_due(stored: int, config: Any, done: int) -> int:
    """Gradient steps owed for the `stored` steps beyond those that learning waits for."""
    return max(0, int((stored - config.learning_starts) * config.updates_per_step) - done)
