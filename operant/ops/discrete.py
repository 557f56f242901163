"""Numbers beside discrete actions, and which of those actions are allowed.

The numbers of all parts of an action lie behind each other, `[..., sum of choices]`; as rows they
are `[..., parts, most choices]`, where the places that a shorter part lacks are forbidden.

A mask is true where an action is allowed. Where it allows nothing, nothing is being decided (some
environments show such a mask when the episode is over): there everything counts as allowed, so
that every number stays finite. `distribution.check_masks` refuses it where something is decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor


def permitted(x: Tensor, mask: Tensor | None) -> Tensor:
    """`x` with a hugely negative number at forbidden actions."""
    return x if mask is None else _forbid(x, _forbidden(mask))


def rows(flat: Tensor, choices: Sequence[int], mask: Tensor | None) -> Tensor:
    """`permitted` for flat numbers, as one row a part."""
    x, forbidden = spread(flat, choices), forbidden_rows(mask, choices, flat.device)
    return x if forbidden is None else _forbid(x, forbidden)


def forbidden_rows(
    mask: Tensor | None, choices: Sequence[int], device: torch.device
) -> Tensor | None:
    """True where `rows` has no number, as one row a part; None if it has them all."""
    lacking = None if _equal(choices) else _layout(tuple(choices), device).lacking
    if mask is None:
        return lacking
    forbidden = _forbidden(spread(mask, choices))
    return forbidden if lacking is None else forbidden | lacking


def spread(flat: Tensor, choices: Sequence[int]) -> Tensor:
    """Flat numbers as one row a part, with anything in the places that a part lacks."""
    if not _equal(choices):
        flat = flat.index_select(-1, _layout(tuple(choices), flat.device).source)
    return flat.view(*flat.shape[:-1], len(choices), max(choices))


def flatten(x: Tensor, choices: Sequence[int]) -> Tensor:
    """The inverse of `spread`."""
    flat = x.flatten(-2)
    if _equal(choices):
        return flat
    return flat.index_select(-1, _layout(tuple(choices), x.device).place)


def _forbid(x: Tensor, forbidden: Tensor) -> Tensor:
    # Not infinite: its exponential is exactly zero all the same, and zero times it is not NaN.
    # Half of the lowest number, so that subtracting a normaliser cannot overflow.
    return x.masked_fill(forbidden, torch.finfo(x.dtype).min / 2)


def _forbidden(mask: Tensor) -> Tensor:
    # Something is allowed, but not this: the exclusive or saves a negation while acting.
    return mask.any(-1, keepdim=True) ^ mask


def _equal(choices: Sequence[int]) -> bool:
    return min(choices) == max(choices)


class _Layout(NamedTuple):
    source: Tensor  # int64 [parts * most choices]: the flat place that each place in rows shows
    lacking: Tensor  # bool [parts, most choices]: places in rows beyond the choices of a part
    place: Tensor  # int64 [sum of choices]: the place in rows of each flat number


@lru_cache(maxsize=64)
def _layout(choices: tuple[int, ...], device: torch.device) -> _Layout:
    # Made once while acting, then used while learning, which inference tensors may not be.
    with torch.inference_mode(False):
        count = torch.tensor(choices)
        begin = count.cumsum(0) - count
        column = torch.arange(max(choices))
        exists = column < count[:, None]
        # A place that its part lacks shows the part's first number, and so never another part's.
        source = torch.where(exists, begin[:, None] + column, begin[:, None]).flatten()
        place = exists.flatten().nonzero().squeeze(-1)
        return _Layout(source.to(device), (~exists).to(device), place.to(device))
