"""The state of random generators in a snapshot: NumPy's, and Python's own."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from operant.core.errors import EnvironmentFault

# A list, not a look-up in the module: a saved name must not choose what is called.
BIT_GENERATORS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        np.random.PCG64,
        np.random.PCG64DXSM,
        np.random.MT19937,
        np.random.Philox,
        np.random.SFC64,
    )
}


def read_random(value: Any) -> dict[str, Any] | None:
    """The state of a random generator; None for anything else, and for the system's own."""
    if isinstance(value, np.random.Generator):
        return {"kind": "generator", "state": value.bit_generator.state}
    if isinstance(value, np.random.RandomState):
        return {"kind": "random_state", "state": value.get_state(legacy=False)}
    if isinstance(value, random.Random) and not isinstance(value, random.SystemRandom):
        version, numbers, gauss = value.getstate()
        return {"kind": "random", "version": version, "numbers": list(numbers), "gauss": gauss}
    return None


def write_generator(state: dict[str, Any], old: Any) -> np.random.Generator:
    """NumPy's generator in a saved state."""
    kind = state["state"]["bit_generator"]
    if kind not in BIT_GENERATORS:
        known = ", ".join(BIT_GENERATORS)
        raise EnvironmentFault(f"a saved random generator {kind!r} is unknown; expected {known}")
    found = old if isinstance(old, np.random.Generator) else None
    if found is None or type(found.bit_generator).__name__ != kind:
        found = np.random.Generator(BIT_GENERATORS[kind]())
    found.bit_generator.state = state["state"]
    return found


def write_random_state(state: dict[str, Any], old: Any) -> np.random.RandomState:
    """NumPy's older generator in a saved state."""
    found = old if isinstance(old, np.random.RandomState) else np.random.RandomState()
    found.set_state(state["state"])
    return found


def write_random(state: dict[str, Any], old: Any) -> random.Random:
    """Python's generator in a saved state."""
    found = old if isinstance(old, random.Random) else random.Random()
    found.setstate((state["version"], tuple(state["numbers"]), state["gauss"]))
    return found
