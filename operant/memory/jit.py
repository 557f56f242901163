"""Loops over numbers as machine code."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, of arrays and numbers only, as machine code that is kept for the next process.

    The compiler is loaded by the first call: whoever never calls does not wait for it.
    """
    made: list[Callable[P, R]] = []

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if not made:
            made.append(_machine_code(function))
        return made[0](*args, **kwargs)

    return call


def _machine_code(function: Any) -> Any:
    numba = import_module("numba")
    try:
        return numba.njit(cache=True)(function)
    except RuntimeError:  # there is no directory in which to keep it
        return numba.njit(function)
