"""Loops as machine code: the same numbers, and no waiting for whoever has none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from operant.core.tree import Array
from operant.memory.jit import jit


@jit
def summed(numbers: Array, factor: float) -> float:
    """Each number times a factor, one after another."""
    total = 0.0
    for number in numbers:
        total += factor * number
    return total


def test_it_gives_what_the_loop_gives() -> None:
    numbers = np.random.default_rng(0).random(1000)
    loop: Any = summed.__wrapped__  # type: ignore[attr-defined]  # as functools.wraps leaves it
    assert summed(numbers, 0.1) == loop(numbers, 0.1)
    assert summed.__doc__ == "Each number times a factor, one after another."


def test_compiled_code_is_cached_for_the_next_process() -> None:
    summed(np.ones(2), 2.0)
    kept = Path(__file__).with_name("__pycache__").glob(f"{Path(__file__).stem}.summed-*.nbc")
    assert list(kept)


def test_what_cannot_be_cached_is_compiled_anew() -> None:
    names: dict[str, Any] = {}
    exec("def twice(x):\n    return 2 * x", names)  # from no file, beside which to keep it
    assert jit(names["twice"])(21) == 42


def test_a_replay_without_priorities_loads_no_compiler() -> None:
    code = """
import sys
from operant.session.compose import compose
from operant.session.build import build
from operant.session.try_out import try_out
config = compose("dqn", {"env": {"id": "CartPole-v1"}})[0]
build(try_out(config)).close()
assert "numba" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
