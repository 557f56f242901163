"""Seeds for the parts of a run, from the one seed that it was given."""

from __future__ import annotations

import zlib

import numpy as np


def seed_for(seed: int, part: str) -> int:
    """A seed for one part of a run, unrelated to those of its other parts."""
    return int(np.random.SeedSequence([seed, zlib.crc32(part.encode())]).generate_state(1)[0])


def derived(seed: int, *path: int) -> int:
    """A seed that follows from another one and is not near it."""
    return int(np.random.SeedSequence([abs(seed), *path]).generate_state(1)[0] >> 1)
