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
    return x if mask is None else _forbid(x, _or_all(mask))


def rows(flat: Tensor, choices: Sequence[int], mask: Tensor | None) -> Tensor:
    """`permitted` for flat numbers, as one row a part."""
    x, allowed = spread(flat, choices), allowed_rows(mask, choices, flat.device)
    return x if allowed is None else _forbid(x, allowed)


def allowed_rows(
    mask: Tensor | None, choices: Sequence[int], device: torch.device
) -> Tensor | None:
    """The flat mask as one row a part; None if every place is there and allowed."""
    exists = None if _equal(choices) else _layout(tuple(choices), device).exists
    if mask is None:
        return exists
    allowed = _or_all(spread(mask, choices))
    return allowed if exists is None else allowed & exists


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


def _forbid(x: Tensor, allowed: Tensor) -> Tensor:
    # Not infinite: its exponential is exactly zero all the same, and zero times it is not NaN.
    # Half of the lowest number, so that subtracting a normaliser cannot overflow.
    return torch.where(allowed, x, torch.finfo(x.dtype).min / 2)


def _or_all(mask: Tensor) -> Tensor:
    return mask | ~mask.any(-1, keepdim=True)


def _equal(choices: Sequence[int]) -> bool:
    return min(choices) == max(choices)


class _Layout(NamedTuple):
    source: Tensor  # int64 [parts * most choices]: the flat place that each place in rows shows
    exists: Tensor  # bool [parts, most choices]
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
        return _Layout(source.to(device), exists.to(device), place.to(device))
