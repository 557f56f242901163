"""Whether a network rounds the rows of a batch as it does those of its parts."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from torch import Generator, Tensor

from operant.core import tree
from operant.core.experience import Decision, Tensors
from operant.core.protocols import Actor, Rows
from operant.memory.rollout import RolloutCache
from operant.samplers.joint_manager import Bounds

ROUNDS = 8  # in which parts and whole are compared


def check_rounding(actor: Actor, cache: RolloutCache, bounds: Bounds) -> None:
    """Say if chunks collected in these parts can differ from those of one process."""
    if not agrees(actor, cache, bounds):
        warnings.warn(
            "this network rounds the rows of a batch otherwise than those of its parts: "
            "chunks will agree with those of a serial sampler up to rounding only",
            stacklevel=4,
        )


def agrees(actor: Actor, cache: RolloutCache, bounds: Bounds) -> bool:
    """Whether decisions for parts of a batch are those for the whole, bit for bit."""
    total = bounds[-1][1]
    seen, state = _stirred(cache.observation()), cache.hidden_state()
    rows, actor.rows = actor.rows, None
    whole = actor.act(seen, state, explore=False)
    try:
        for start, stop in bounds:
            actor.rows = Rows(start, stop, total)
            # Every row in turn is the first of a part, the second …: that is what counts.
            for shift in range(ROUNDS):
                place = (np.arange(start, stop) + shift) % total
                some = tree.index(seen, place), tree.index(state, place)
                if not _same(actor.act(*some, explore=False), tree.index(whole, place)):
                    return False
        return True
    finally:
        actor.rows = rows


def _stirred(observation: Tensors) -> Tensors:
    """Observations that differ more than those after a reset, so that rounding shows."""
    draw = Generator().manual_seed(0)
    return {name: _stir(x, draw) for name, x in observation.items()}


def _stir(x: Tensor, draw: Generator) -> Tensor:
    if x.is_floating_point():
        return x + torch.randn(x.shape, generator=draw)
    if x.dtype is torch.uint8:
        # No larger than those seen: a network may look bytes up, and has no row for others.
        end = max(1, int(x.max())) + 1
        return torch.randint(end, x.shape, generator=draw, dtype=x.dtype)
    return x  # whose range is not known here


def _same(one: Decision, other: Decision) -> bool:
    pairs = zip(tree.leaves(one), tree.leaves(other), strict=True)
    return all(x.equal(y) for (_, x), (_, y) in pairs)
