"""Errors that are addressed to the user: one sentence with the field, the value and the remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

MAX_LISTED = 12  # names that an error lists when none is near


class UsageError(ValueError):
    """Input that cannot be used; the command line prints it as one line and exits with 2."""


class CheckpointError(RuntimeError):
    """A checkpoint that is missing, torn, altered or not ours."""


class EnvironmentFault(RuntimeError):  # noqa: N818  # what happened to the environment, not in our code
    """An environment broke its contract or died; names the environment, the step and the field."""


class TrainingFault(RuntimeError):  # noqa: N818  # what happened to the numbers, not in our code
    """Learning gave a number that is none; names the metric and the step."""


def described(error: BaseException) -> str:
    """The kind and the message of an error, whatever its own text does."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # of a `__str__` that fails itself
        return type(error).__name__


def suggest(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or the known names when nothing is near."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if near:
        return f"; did you mean {near[0]!r}?"
    listed = ", ".join(names[:MAX_LISTED]) + (", …" if len(names) > MAX_LISTED else "")
    return f"; expected one of {listed}" if names else ""
