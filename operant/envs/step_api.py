"""What `reset` and `step` of an environment return; the old API of `gym` is told by its shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from operant.core.conversion import quoted
from operant.core.errors import EnvironmentFault

RESET_PARTS, STEP_PARTS, OLD_STEP_PARTS = 2, 5, 4
OLD = "as in the old API of gym"


def wrong_reset(result: Any) -> str:
    """What is wrong with what `reset` returned; empty if nothing is."""
    wanted = "return `observation, info`, with info a dict, {} if there is nothing to tell"
    if not isinstance(result, tuple) or len(result) != RESET_PARTS:
        return f"reset returns {_shape(result)}, {OLD}; {wanted}"
    if not isinstance(result[1], dict):
        return f"the info that reset returns is a {type(result[1]).__name__}; {wanted}"
    return ""


def wrong_step(result: Any) -> str:
    """What is wrong with what `step` returned; empty if nothing is."""
    if isinstance(result, tuple) and len(result) == STEP_PARTS:
        kind = type(result[-1])
        if not issubclass(kind, dict):
            return f"the info that step returns is a {kind.__name__}; return a dict, {{}} if empty"
        flags = {"terminated": result[2], "truncated": result[3]}
        wrong = [name for name, flag in flags.items() if as_flag(flag) is None]
        return f"{wrong[0]} is {quoted(flags[wrong[0]])}; return True or False" if wrong else ""
    old = isinstance(result, tuple) and len(result) == OLD_STEP_PARTS
    return (
        f"step returns {_shape(result)}{', ' + OLD if old else ''}; return `observation, reward, "
        f"terminated, truncated, info`: terminated where the task ends, truncated where only a "
        f"time limit ends the episode"
    )


def as_flag(value: Any) -> bool | None:
    """True or False of a bool, a number, or an array of one entry; None if it is none of these."""
    if type(value) is bool:
        return value
    numeric = isinstance(value, int | float | np.generic | np.ndarray)
    x = np.asarray(value if numeric else None)
    return bool(x.item()) if x.size == 1 and x.dtype.kind in "biuf" else None


def checked_reset(result: Any, env_id: str) -> tuple[Any, dict[str, Any]]:
    """What `reset` returned; an error if it is not what Gymnasium defines."""
    if wrong := wrong_reset(result):
        raise EnvironmentFault(f"{env_id}: {wrong}")
    observation, info = result
    return observation, info


def _shape(result: Any) -> str:
    if isinstance(result, tuple):
        return f"{len(result)} values"
    return f"only a {type(result).__name__}"
