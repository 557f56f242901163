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

SHIFTS = 8  # rotations of the batch for which parts and whole are compared


def check_rounding(actor: Actor, cache: RolloutCache, bounds: Bounds) -> None:
    """Warn if chunks collected in these parts can differ from those of one process."""
    if not parts_agree(actor, cache, bounds):
        warnings.warn(
            "this network rounds the rows of a batch differently from those of its parts: "
            "chunks will agree with those of a serial sampler up to rounding only; where torch "
            "multiplies by Intel's MKL, MKL_CBWR=AUTO,STRICT in the environment makes them equal",
            stacklevel=4,
        )


def parts_agree(actor: Actor, cache: RolloutCache, bounds: Bounds) -> bool:
    """Whether actions for parts of a batch are those for the whole, bit for bit."""
    total = bounds[-1][1]
    seen, state = _perturbed(cache.observation()), cache.hidden_state()
    rows, actor.rows = actor.rows, None
    whole = actor.act(seen, state, explore=False)
    try:
        for start, stop in bounds:
            actor.rows = Rows(start, stop, total)
            # Rotated, since rounding depends on the position of a row in its part.
            for shift in range(SHIFTS):
                rows_of = (np.arange(start, stop) + shift) % total
                part = tree.index(seen, rows_of), tree.index(state, rows_of)
                if not _equal(actor.act(*part, explore=False), tree.index(whole, rows_of)):
                    return False
        return True
    finally:
        actor.rows = rows


def _perturbed(observation: Tensors) -> Tensors:
    """Observations that differ more than those after a reset, so that rounding shows."""
    generator = Generator().manual_seed(0)
    return {name: _perturb(x, generator) for name, x in observation.items()}


def _perturb(x: Tensor, generator: Generator) -> Tensor:
    if x.is_floating_point():
        return x + torch.randn(x.shape, generator=generator)
    if x.dtype is torch.uint8:
        # No larger than those seen: larger ones may be out of range of an embedding.
        end = max(1, int(x.max())) + 1
        return torch.randint(end, x.shape, generator=generator, dtype=x.dtype)
    return x  # the range of other integers is not known here


def _equal(one: Decision, other: Decision) -> bool:
    pairs = zip(tree.leaves(one), tree.leaves(other), strict=True)
    return all(x.equal(y) for (_, x), (_, y) in pairs)
