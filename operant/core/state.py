"""State of anything as a tree of tensors, arrays and plain values, and back again."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import torch

from operant.core.protocols import Stateful

IN_PLACE = torch.Generator | np.random.Generator | torch.Tensor


def state_of(owner: object, *names: str) -> dict[str, Any]:
    """The state of the named attributes: parts, generators, tensors, numbers, and dicts of them."""
    return {name: _read(getattr(owner, name)) for name in names}


def restore(owner: object, state: dict[str, Any], *names: str) -> None:
    """Put back what `state_of` read; parts are filled in place, plain values are replaced."""
    missing = [name for name in names if name not in state]
    if missing:
        raise ValueError(f"{type(owner).__name__}: the saved state lacks {', '.join(missing)}")
    for name in names:
        setattr(owner, name, _write(getattr(owner, name), state[name]))


def _read(value: Any) -> Any:
    if isinstance(value, Stateful):
        return value.state_dict()
    if isinstance(value, torch.Generator):
        return value.get_state()
    if isinstance(value, np.random.Generator):
        return value.bit_generator.state
    if isinstance(value, dict):
        return {key: _read(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_read(part) for part in value]
    return value


def _write(value: Any, state: Any) -> Any:
    if isinstance(value, Stateful):
        value.load_state_dict(state)
    elif isinstance(value, torch.Generator):
        value.set_state(state)
    elif isinstance(value, np.random.Generator):
        value.bit_generator.state = state
    elif isinstance(value, torch.Tensor):
        value.data.copy_(state)
    elif isinstance(value, dict) and _has_parts(value):
        value.update({key: _write(part, state[key]) for key, part in value.items()})
    elif isinstance(value, list | tuple):
        if not _has_parts(value):
            return type(value)(deepcopy(state))
        return type(value)(_write(*pair) for pair in zip(value, state, strict=True))
    else:
        # A copy, or whoever loads the same state next would share what this owner changes.
        return deepcopy(state)
    return value


def _has_parts(value: Any) -> bool:
    """Whether there is something in it that is filled in place."""
    if isinstance(value, dict):
        return any(map(_has_parts, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_has_parts, value))
    return isinstance(value, Stateful | IN_PLACE)
