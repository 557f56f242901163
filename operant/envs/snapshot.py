"""The state of a simulator as arrays and plain values, without pickle.

Walks the attributes of an environment and its wrappers. What it cannot read (spaces, surfaces for
rendering, functions) it leaves out; `exactness` tries whether the rest, all savable, is enough.
"""

from __future__ import annotations

import io
import random
import socket
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from importlib import import_module
from inspect import isroutine
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec

from operant.core.errors import EnvironmentFault
from operant.envs.snapshot_random import (
    read_random,
    write_generator,
    write_random,
    write_random_state,
)

PLAIN = (type(None), bool, int, float, str, bytes)
TENSOR_KINDS, TENSOR_ITEM = "biuf", 8  # kinds and largest item size of arrays that torch has, too
OUTSIDE = (io.IOBase, socket.socket, random.SystemRandom)  # with a state outside of the process
MAX_NAMED = 3  # attributes in a message
OTHER = {"kind": "other"}  # stands for something that is not read
FOREIGN = ("pygame", "torch", "multiprocessing", "threading", "logging", "importlib")


@dataclass
class Walk:
    """What was met on the way through the attributes of an environment."""

    seen: set[int] = field(default_factory=set)
    path: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)  # attributes left out, with their types
    unsavable: list[str] = field(default_factory=list)  # those of them that are sure to change

    def leave_out(self, value: Any) -> dict[str, Any]:
        """The place holder of something that is not read."""
        name = ".".join(part for part in self.path if part != "env")  # without the wrappers
        self.unread.append(f"{name} ({type(value).__name__})")
        if isinstance(value, OUTSIDE) or _moves_on(value):
            self.unsavable.append(self.unread[-1])
        return OTHER


def _moves_on(value: Any) -> bool:
    """Whether this is an iterator, such as a Python generator, whose place cannot be read."""
    return isinstance(value, Iterator) and not hasattr(value, "__dict__")


def capture(env: Any) -> dict[str, Any]:
    """The state of an environment or vector environment; an open file or iterator is an error."""
    walk = Walk()
    state = _read_object(env, walk)
    if walk.unsavable:
        raise EnvironmentFault(f"{', '.join(walk.unsavable)} cannot be saved")
    return state


def why_inexact(env: Any) -> str:
    """What of an environment that was tried, and does not resume exactly, cannot be saved."""
    walk = Walk()
    try:
        _read_object(env, walk)
    except EnvironmentFault as error:
        return str(error)
    except Exception as error:  # whatever reading the attributes of a class raises
        return f"its state cannot be read ({type(error).__name__}: {error})"
    found = walk.unsavable or walk.unread
    named = ", ".join(found[:MAX_NAMED]) + " and others" * (len(found) > MAX_NAMED)
    return f"{named} cannot be saved" if found else "a restored copy went on differently"


def restore(env: Any, state: dict[str, Any]) -> None:
    """Put a captured state into an environment of the same class."""
    if state.get("class") != type(env).__name__:
        raise EnvironmentFault(
            f"the saved environment is a {state.get('class')!r}, this one a "
            f"{type(env).__name__!r}; resume with the configuration the run was started with"
        )
    env.reset(seed=0)  # attributes that exist only after a reset need objects to fill
    _write(state, env)


def _read(value: Any, walk: Walk) -> Any:
    if type(value) in PLAIN:
        return value
    if isinstance(value, np.ndarray):
        return _read_array(value, walk)
    if isinstance(value, np.generic):
        return {"kind": "scalar", "value": _read(np.asarray(value), walk)}
    if isinstance(value, tuple | list | deque):
        limit = value.maxlen if isinstance(value, deque) else None
        kind = next(k for k in (tuple, list, deque) if isinstance(value, k)).__name__
        return {"kind": kind, "parts": [_read(part, walk) for part in value], "limit": limit}
    if isinstance(value, dict):
        parts = [[_read(k, walk), _read(v, walk)] for k, v in value.items()]
        return {"kind": "dict", "parts": parts}
    return _read_value(value) or _read_simulator(value) or _read_object(value, walk)


def _read_array(value: np.ndarray[Any, Any], walk: Walk) -> Any:
    if value.dtype.kind in TENSOR_KINDS and value.dtype.itemsize <= TENSOR_ITEM:
        return value.copy()
    file = io.BytesIO()
    try:  # text, byte strings, dates, complex and structured arrays, as NumPy's own files hold them
        np.save(file, value, allow_pickle=False)
    except ValueError:  # an array of objects
        return walk.leave_out(value)
    return {"kind": "npy", "value": np.frombuffer(file.getvalue(), np.uint8).copy()}


def _read_value(value: Any) -> dict[str, Any] | None:
    if type(value) is complex:
        return {"kind": "complex", "parts": [value.real, value.imag]}
    if isinstance(value, Enum):
        return {"kind": "enum", "name": value.name}
    return read_random(value)


def _read_simulator(value: Any) -> dict[str, Any] | None:
    kind = type(value).__name__
    if kind == "ALEInterface":
        if value.getFloat("repeat_action_probability") > 0:
            # The emulator does not serialise the action that it may repeat.
            raise EnvironmentFault(
                "an Atari game with sticky actions cannot be saved exactly; expected env.sticky = 0"
            )
        state = value.cloneState(include_rng=True).serialize()
        return {"kind": "ale", "state": np.frombuffer(state, np.uint8).copy()}
    if kind == "MjData":
        arrays = {name: x.copy() for name, x in _arrays(value).items()}
        return {"kind": "mujoco", "time": value.time, "arrays": arrays}
    return None


def _read_object(value: Any, walk: Walk) -> dict[str, Any]:
    module = type(value).__module__.split(".")[0]
    skipped = isinstance(value, gymnasium.Space | EnvSpec | type) or isroutine(value)
    if skipped or id(value) in walk.seen:
        return OTHER
    if module in FOREIGN or not hasattr(value, "__dict__") or isinstance(value, OUTSIDE):
        return walk.leave_out(value)
    walk.seen.add(id(value))
    parts = {}
    for name, part in vars(value).items():
        walk.path.append(name)
        parts[name] = _read(part, walk)
        walk.path.pop()
    known = {name: part for name, part in parts.items() if part is not OTHER}
    return {"kind": "object", "class": type(value).__name__, "attributes": known}


def _write(state: Any, old: Any) -> Any:
    """The value that `state` describes; the object `old` in its place is filled where possible."""
    if isinstance(state, np.ndarray):
        return state.copy()
    if not isinstance(state, dict):
        return state
    kind = state["kind"]
    if kind == "other":
        return old
    if kind == "object":
        if not hasattr(old, "__dict__"):
            raise EnvironmentFault(
                f"a saved {state['class']!r} cannot be restored: found {old!r} in its place"
            )
        for name, part in state["attributes"].items():
            vars(old)[name] = _write(part, vars(old).get(name))
        return old
    return WRITERS[kind](state, old)


def _write_parts(state: dict[str, Any], old: Any) -> list[Any]:
    olds = list(old) if isinstance(old, tuple | list | deque) else []
    olds += [None] * (len(state["parts"]) - len(olds))
    return [_write(part, before) for part, before in zip(state["parts"], olds, strict=False)]


def _write_tuple(state: dict[str, Any], old: Any) -> tuple[Any, ...]:
    parts = _write_parts(state, old)
    named = isinstance(old, tuple) and hasattr(old, "_fields") and len(old) == len(parts)
    return type(old)(*parts) if named else tuple(parts)


def _write_dict(state: dict[str, Any], old: Any) -> dict[Any, Any]:
    keys = [_write(key, None) for key, _ in state["parts"]]
    olds = old if isinstance(old, dict) else {}
    values = [_write(p[1], olds.get(k)) for k, p in zip(keys, state["parts"], strict=True)]
    return dict(zip(keys, values, strict=True))


def _write_enum(state: dict[str, Any], old: Any) -> Enum:
    # Looked up, never written to: a member is one object for the whole process.
    if not isinstance(old, Enum):
        raise EnvironmentFault(f"{state['name']!r} of an enum cannot be restored over {old!r}")
    return type(old)[state["name"]]


def _write_ale(state: dict[str, Any], old: Any) -> Any:
    old.restoreState(import_module("ale_py").ALEState(np.asarray(state["state"]).tobytes()))
    return old


def _write_mujoco(state: dict[str, Any], old: Any) -> Any:
    for name, x in _arrays(old).items():
        saved = state["arrays"].get(name)
        if saved is not None and saved.shape == x.shape:  # contacts vary, and are computed
            x[...] = saved
    old.time = state["time"]
    return old


def _arrays(data: Any) -> dict[str, Any]:
    """Every array of MuJoCo's data: rewards also read some outside of the integration state."""
    names = [name for name in dir(data) if not name.startswith(("_", "efc_"))]
    found = {name: getattr(data, name) for name in names}
    return {name: x for name, x in found.items() if isinstance(x, np.ndarray) and x.flags.writeable}


WRITERS = {
    "scalar": lambda state, old: np.asarray(_write(state["value"], None))[()],
    "complex": lambda state, old: complex(*state["parts"]),
    "enum": _write_enum,
    "npy": lambda state, old: np.load(io.BytesIO(state["value"].tobytes()), allow_pickle=False),
    "text": lambda state, old: np.asarray(state["value"], dtype=np.str_),  # of older checkpoints
    "tuple": _write_tuple,
    "list": _write_parts,
    "deque": lambda state, old: deque(_write_parts(state, old), state["limit"]),
    "dict": _write_dict,
    "generator": write_generator,
    "random_state": write_random_state,
    "random": write_random,
    "ale": _write_ale,
    "mujoco": _write_mujoco,
}
