"""Distributions over discrete actions; parameters are logits.

The logits of all parts of an action lie behind each other, `[..., sum of choices]`; as rows they
are `[..., parts, most choices]`, where the places that a shorter part lacks are masked.

A mask is true where an action is allowed. A masked action has probability zero, is never drawn,
and adds neither entropy nor gradient. Where a mask allows nothing, nothing is being decided (some
environments show such a mask when the episode is over): there everything counts as allowed, so
that every number stays finite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Generator, Tensor

from operant.core.spaces import Shape
from operant.core.tree import Array


@dataclass(frozen=True)
class Categorical:
    """One of `n` choices; actions are int64 `[...]`."""

    n: int

    @property
    def params(self) -> int:
        return self.n

    def sample(self, params: Tensor, mask: Tensor | None, generator: Generator) -> Tensor:
        """Draw an allowed choice."""
        return _gumbel_argmax(masked_logits(params, mask), generator)

    def mode(self, params: Tensor, mask: Tensor | None) -> Tensor:
        """The most likely allowed choice."""
        return masked_logits(params, mask).argmax(-1)

    def log_prob(self, params: Tensor, action: Tensor, mask: Tensor | None) -> Tensor:
        """Log-probability of `action`, `[...]`; hugely negative, not infinite, where masked."""
        return _chosen(masked_logits(params, mask).log_softmax(-1), action)

    def entropy(self, params: Tensor, mask: Tensor | None) -> Tensor:
        """Entropy `[...]`; zero where only one choice is allowed."""
        return _entropy(masked_logits(params, mask).log_softmax(-1), mask is not None)

    def evaluate(
        self, params: Tensor, action: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """`log_prob` and `entropy` at the cost of one."""
        log_prob = masked_logits(params, mask).log_softmax(-1)
        return _chosen(log_prob, action), _entropy(log_prob, mask is not None)

    def kl(self, p: Tensor, q: Tensor, mask: Tensor | None) -> Tensor:
        """KL(p, q), `[...]`; zero where they are the same."""
        return _kl(masked_logits(p, mask), masked_logits(q, mask))

    def sample_numpy(
        self, params: Array, generator: Generator, rows: tuple[int, int, int], log_prob: bool
    ) -> tuple[Array, Array | None]:
        """`sample` for rows `start` to `stop` of `total`, and the log-probability if wanted."""
        start, stop, total = rows
        noise = torch.empty(total, self.n).exponential_(generator=generator).numpy()
        action = (params - np.log(noise[start:stop])).argmax(1)
        if not log_prob:
            return action, None
        # The log of a sum of exponentials one by one, so that none overflows.
        return action, params[np.arange(len(action)), action] - np.logaddexp.reduce(params, 1)


@dataclass(frozen=True)
class MultiCategorical:
    """One choice in each of several parts; actions are int64 `[..., parts]`, or `[..., *shape]`.

    Parameters and masks are those of all parts behind each other.
    """

    choices: tuple[int, ...]
    shape: Shape = ()  # of a grid of parts, row by row; empty: a vector

    @property
    def params(self) -> int:
        return sum(self.choices)

    def sample(self, params: Tensor, mask: Tensor | None, generator: Generator) -> Tensor:
        """Draw an allowed choice of each part."""
        return self._shaped(_gumbel_argmax(logit_rows(params, self.choices, mask), generator))

    def mode(self, params: Tensor, mask: Tensor | None) -> Tensor:
        """The most likely allowed choice of each part."""
        return self._shaped(logit_rows(params, self.choices, mask).argmax(-1))

    def log_prob(self, params: Tensor, action: Tensor, mask: Tensor | None) -> Tensor:
        """Log-probability of `action`, `[...]`: the sum over its parts."""
        log_prob = logit_rows(params, self.choices, mask).log_softmax(-1)
        return _chosen(log_prob, self._flat(action)).sum(-1)

    def entropy(self, params: Tensor, mask: Tensor | None) -> Tensor:
        """Entropy `[...]`: the sum over the parts."""
        log_prob = logit_rows(params, self.choices, mask).log_softmax(-1)
        return _entropy(log_prob, self._filled(mask)).sum(-1)

    def evaluate(
        self, params: Tensor, action: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """`log_prob` and `entropy` at the cost of one."""
        log_prob = logit_rows(params, self.choices, mask).log_softmax(-1)
        entropy = _entropy(log_prob, self._filled(mask))
        return _chosen(log_prob, self._flat(action)).sum(-1), entropy.sum(-1)

    def kl(self, p: Tensor, q: Tensor, mask: Tensor | None) -> Tensor:
        """KL(p, q), `[...]`: the sum over the parts."""
        return _kl(logit_rows(p, self.choices, mask), logit_rows(q, self.choices, mask)).sum(-1)

    def _shaped(self, x: Tensor) -> Tensor:
        return x.reshape(*x.shape[:-1], *self.shape) if self.shape else x

    def _flat(self, action: Tensor) -> Tensor:
        return action.flatten(-len(self.shape)) if self.shape else action

    def _filled(self, mask: Tensor | None) -> bool:
        """Whether some places in rows hold no choice that is allowed."""
        return mask is not None or not _equal(self.choices)


def logits_of(probability: Tensor, least: float = 1e-6) -> Tensor:
    """Logits whose softmax is `probability`, of which none counts as less than `least`."""
    return probability.clamp(min=least).log()


def masked_logits(x: Tensor, mask: Tensor | None) -> Tensor:
    """`x` with a hugely negative number at masked actions."""
    return x if mask is None else _fill_masked(x, _forbidden(mask))


def logit_rows(flat: Tensor, choices: Sequence[int], mask: Tensor | None) -> Tensor:
    """`masked_logits` for flat numbers, as one row a part."""
    x, forbidden = to_rows(flat, choices), forbidden_rows(mask, choices, flat.device)
    return x if forbidden is None else _fill_masked(x, forbidden)


def forbidden_rows(
    mask: Tensor | None, choices: Sequence[int], device: torch.device
) -> Tensor | None:
    """True where `logit_rows` has no number, as one row a part; None if it has them all."""
    lacking = None if _equal(choices) else _row_layout(tuple(choices), device).lacking
    if mask is None:
        return lacking
    forbidden = _forbidden(to_rows(mask, choices))
    return forbidden if lacking is None else forbidden | lacking


def max_entropy(mask: Tensor, choices: Sequence[int]) -> Tensor:
    """Entropy `[...]` of the uniform distribution over what a mask allows: Σ log of the choices."""
    forbidden = forbidden_rows(mask, choices, mask.device)
    assert forbidden is not None, "there is a mask"
    return (~forbidden).sum(-1).log().sum(-1)


def to_rows(flat: Tensor, choices: Sequence[int]) -> Tensor:
    """Flat numbers as one row a part, with anything in the places that a part lacks."""
    if not _equal(choices):
        flat = flat.index_select(-1, _row_layout(tuple(choices), flat.device).source)
    return flat.view(*flat.shape[:-1], len(choices), max(choices))


def from_rows(x: Tensor, choices: Sequence[int]) -> Tensor:
    """The inverse of `to_rows`."""
    flat = x.flatten(-2)
    if _equal(choices):
        return flat
    return flat.index_select(-1, _row_layout(tuple(choices), x.device).place)


def _gumbel_argmax(logits: Tensor, generator: Generator) -> Tensor:
    """A draw from the softmax of `logits`: the Gumbel-max trick, with -log E for Gumbel noise.

    `torch.multinomial` draws the same, and takes four times as long for a few rows.
    """
    noise = torch.empty_like(logits).exponential_(generator=generator)
    return (logits - noise.log_()).argmax(-1)


def _chosen(log_prob: Tensor, action: Tensor) -> Tensor:
    return log_prob.gather(-1, action.unsqueeze(-1)).squeeze(-1)


def _entropy(log_prob: Tensor, filled: bool) -> Tensor:
    probability = log_prob.exp()
    if filled:
        # The gradient's factor would be the huge number times a weight, which may be infinite, and
        # infinity times probability zero is NaN.
        log_prob = torch.where(probability > 0, log_prob, 0)
    return -(probability * log_prob).sum(-1)


def _kl(p: Tensor, q: Tensor) -> Tensor:
    p, q = p.log_softmax(-1), q.log_softmax(-1)
    return (p.exp() * (p - q)).sum(-1)


def _fill_masked(x: Tensor, forbidden: Tensor) -> Tensor:
    # Not infinite: its exponential is exactly zero all the same, and zero times it is not NaN.
    # Half of the lowest number, so that subtracting a normaliser cannot overflow.
    return x.masked_fill(forbidden, torch.finfo(x.dtype).min / 2)


def _forbidden(mask: Tensor) -> Tensor:
    # Something is allowed, but not this: the exclusive or saves a negation while acting.
    return mask.any(-1, keepdim=True) ^ mask


def _equal(choices: Sequence[int]) -> bool:
    return min(choices) == max(choices)


class _RowLayout(NamedTuple):
    source: Tensor  # int64 [parts * most choices]: the flat place that each place in rows shows
    lacking: Tensor  # bool [parts, most choices]: places in rows beyond the choices of a part
    place: Tensor  # int64 [sum of choices]: the place in rows of each flat number


@lru_cache(maxsize=64)
def _row_layout(choices: tuple[int, ...], device: torch.device) -> _RowLayout:
    # Made once while acting, then used while learning, which inference tensors may not be.
    with torch.inference_mode(False):
        count = torch.tensor(choices)
        begin = count.cumsum(0) - count
        column = torch.arange(max(choices))
        exists = column < count[:, None]
        # A place that its part lacks shows the part's first number, and so never another part's.
        source = torch.where(exists, begin[:, None] + column, begin[:, None]).flatten()
        place = exists.flatten().nonzero().squeeze(-1)
        return _RowLayout(source.to(device), (~exists).to(device), place.to(device))
