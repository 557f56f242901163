"""The family of agents that learn from a replay buffer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from operant.agents.agent import AgentBase
from operant.agents.optimizer import averaged
from operant.core import tree
from operant.core.experience import Drawn, Experience, Metrics, Tensors
from operant.core.protocols import Network, ReplayMemory
from operant.ops import returns

Due = frozenset[str]  # what a gradient step moves: `value`, `policy`, `alpha`, `target`


class OffPolicy(AgentBase):
    """Takes as many gradient steps as the steps collected call for.

    A subclass has `descend_on(batch, weight, due)`: the gradient steps on one batch of windows,
    whose metrics hold `td_error` `[B]`, how wrong each window was.
    """

    memory: ReplayMemory
    backup: Callable[[Experience, Tensor], Tensor] | None = None  # in place of n-step returns
    config: Any  # a ReplayConfig with `n_step`, `sequence` and `burn_in`

    def windows(self, recurrent: bool) -> None:
        """Set how many steps of a window are learned from, how many come before, and all it has."""
        self.window = self.config.sequence if recurrent else 1
        self.burn_in = self.config.burn_in if recurrent else 0
        self.length = self.burn_in + self.window + self.config.n_step - 1

    @property
    def learned_rows(self) -> tuple[int, int]:
        """The steps of a window that are learned from: the first, and the one after the last."""
        return self.burn_in, self.burn_in + self.window

    def update(self) -> Metrics:
        """Take the gradient steps that are due; mean metrics."""
        self.learned = []
        due = self.config.updates_due(self.memory.stored, self.updates)
        for _ in range(due if self.memory.holds(self.length) else 0):
            drawn = self.memory.sample(self.config.batch_size, self.length)
            self.learned.append(self.learn_from(drawn, self.due()))
        return averaged(self.learned) | self.rates() if self.learned else {}

    def learn_from(self, drawn: Drawn, due: Due) -> Tensors:
        """One gradient step on what was drawn, moving what is due; its metrics."""
        device = next(self.network.parameters()).device
        batch, weight = tree.to((drawn.experience, drawn.weight), device)
        for network in self.normalizing():
            network.observe(tree.index(batch.observation, 0), batch.valid[0])
        metrics = self.descend_on(batch, weight, due)
        error = metrics.pop("td_error")
        if weight is not None:
            self.memory.prioritize(drawn.place, error)
        self.updates += 1
        return metrics

    def descend_on(self, batch: Experience, weight: Tensor | None, due: Due) -> Tensors:
        """The gradient steps on one batch; metrics, `td_error` `[B]` among them."""
        raise NotImplementedError

    def due(self) -> Due:
        """What the next gradient step moves."""
        raise NotImplementedError

    def normalizing(self) -> tuple[Network, ...]:
        """Networks that may normalise by what they have seen."""
        return (self.network,)

    def rates(self) -> Metrics:
        """What changes by schedule, and the count of gradient steps."""
        lr = self.config.lr(self.steps_taken())
        return {"learning_rate": lr, "n_updates": self.updates}

    def counted(self, batch: Experience) -> Tensor | None:
        """Which of the learned steps count; None: all, as windows begin with a valid step."""
        return None if self.learned_rows == (0, 1) else batch.valid[slice(*self.learned_rows)]

    def n_step(self, batch: Experience, next_value: Tensor) -> Tensor:
        """n-step returns `[T, B]` of the batch, bootstrapped from `next_value`."""
        if self.backup is not None:
            return self.backup(batch, next_value)
        discount = self.config.gamma * ~batch.terminated
        return returns.n_step(batch.reward, next_value, discount, batch.cut, self.config.n_step)


@torch.no_grad()
def window_error(error: Tensor, valid: Tensor | None) -> Tensor:
    """How wrong each window was: its mean absolute TD error `[B]` over the steps that count."""
    error = error.abs()
    if valid is None:
        return error.mean(0)
    return (error * valid).sum(0) / valid.sum(0).clamp(min=1)  # after burn-in perhaps none counts
