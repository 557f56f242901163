"""Distributions over discrete actions; parameters are logits.

A forbidden action has probability zero, is never drawn, and adds neither entropy nor gradient.
Where nothing is allowed, everything is (see `discrete`).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from operant.ops.discrete import permitted, rows


@dataclass(frozen=True)
class Categorical:
    """One of `n` choices; actions are int64 `[...]`."""

    n: int

    @property
    def params(self) -> int:
        return self.n

    def sample(self, params: Tensor, mask: Tensor | None, generator: Generator) -> Tensor:
        """Draw an allowed choice."""
        return _race(permitted(params, mask), generator)

    def mode(self, params: Tensor, mask: Tensor | None) -> Tensor:
        """The likeliest allowed choice."""
        return permitted(params, mask).argmax(-1)

    def log_prob(self, params: Tensor, action: Tensor, mask: Tensor | None) -> Tensor:
        """Log-probability of `action`, `[...]`; hugely negative, not infinite, where forbidden."""
        return _log_prob(permitted(params, mask), action)

    def entropy(self, params: Tensor, mask: Tensor | None) -> Tensor:
        """Entropy `[...]`; zero where only one choice is allowed."""
        return _entropy(permitted(params, mask))

    def evaluate(
        self, params: Tensor, action: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """`log_prob` and `entropy` at the cost of one."""
        return _evaluate(permitted(params, mask), action)

    def kl(self, p: Tensor, q: Tensor, mask: Tensor | None) -> Tensor:
        """KL(p, q), `[...]`; zero where they are the same."""
        return _kl(permitted(p, mask), permitted(q, mask))


@dataclass(frozen=True)
class MultiCategorical:
    """One choice in each of several parts; actions are int64 `[..., parts]`.

    Parameters and masks are those of all parts behind each other.
    """

    choices: tuple[int, ...]

    @property
    def params(self) -> int:
        return sum(self.choices)

    def sample(self, params: Tensor, mask: Tensor | None, generator: Generator) -> Tensor:
        """Draw an allowed choice of each part."""
        return _race(rows(params, self.choices, mask), generator)

    def mode(self, params: Tensor, mask: Tensor | None) -> Tensor:
        """The likeliest allowed choice of each part."""
        return rows(params, self.choices, mask).argmax(-1)

    def log_prob(self, params: Tensor, action: Tensor, mask: Tensor | None) -> Tensor:
        """Log-probability of `action`, `[...]`: the sum over its parts."""
        return _log_prob(rows(params, self.choices, mask), action).sum(-1)

    def entropy(self, params: Tensor, mask: Tensor | None) -> Tensor:
        """Entropy `[...]`: the sum over the parts."""
        return _entropy(rows(params, self.choices, mask)).sum(-1)

    def evaluate(
        self, params: Tensor, action: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """`log_prob` and `entropy` at the cost of one."""
        log_prob, entropy = _evaluate(rows(params, self.choices, mask), action)
        return log_prob.sum(-1), entropy.sum(-1)

    def kl(self, p: Tensor, q: Tensor, mask: Tensor | None) -> Tensor:
        """KL(p, q), `[...]`: the sum over the parts."""
        return _kl(rows(p, self.choices, mask), rows(q, self.choices, mask)).sum(-1)


def _race(logits: Tensor, generator: Generator) -> Tensor:
    """The first of exponential clocks with rates exp(logits) to ring: the least of log E - logit.

    `torch.multinomial` draws the same, and takes four times as long for a few rows.
    """
    clock = torch.empty_like(logits).exponential_(generator=generator)
    return (logits - clock.log_()).argmax(-1)


def _log_prob(logits: Tensor, action: Tensor) -> Tensor:
    return _chosen(logits.log_softmax(-1), action)


def _entropy(logits: Tensor) -> Tensor:
    return _disorder(logits.log_softmax(-1))


def _evaluate(logits: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
    log_prob = logits.log_softmax(-1)
    return _chosen(log_prob, action), _disorder(log_prob)


def _chosen(log_prob: Tensor, action: Tensor) -> Tensor:
    return log_prob.gather(-1, action.unsqueeze(-1)).squeeze(-1)


def _disorder(log_prob: Tensor) -> Tensor:
    return -(log_prob.exp() * log_prob).sum(-1)


def _kl(p: Tensor, q: Tensor) -> Tensor:
    p, q = p.log_softmax(-1), q.log_softmax(-1)
    return (p.exp() * (p - q)).sum(-1)
