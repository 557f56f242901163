"""Just-in-time compilation of loops over numbers, by numba."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def jit(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, of arrays and numbers only, compiled at its first call and cached on disk.

    numba, which is slow to import, is loaded by that call.
    """
    made: list[Callable[P, R]] = []

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if not made:
            made.append(_compile(function))
        return made[0](*args, **kwargs)

    return call


def _compile(function: Any) -> Any:
    numba = import_module("numba")
    try:
        return numba.njit(cache=True)(function)
    except RuntimeError:  # there is no directory for the cache
        return numba.njit(function)
