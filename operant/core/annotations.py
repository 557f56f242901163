"""Annotations of functions that users write, one at a time: others may name what is not there."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, get_type_hints


def function_of(make: Any) -> Any:
    """The function whose arguments a call takes: of a class, its `__init__`."""
    constructor = make.__init__
    return constructor if isinstance(make, type) else make


def annotation_of(function: Callable[..., Any], argument: str) -> Any:
    """The annotation of one argument, as an object; None if it has none.

    One that is text, and names what its module does not hold at run time, raises NameError.
    """
    function = inspect.unwrap(getattr(function, "__func__", function))
    written = getattr(function, "__annotations__", {})
    if argument not in written:
        return None
    alone: Any = SimpleNamespace(__annotations__={argument: written[argument]})
    globals_ = getattr(function, "__globals__", {})
    return get_type_hints(alone, globalns=globals_, include_extras=True)[argument]
