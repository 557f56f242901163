"""Nested spaces of Gymnasium, as plain ones by name, and their values."""

from __future__ import annotations

from typing import Any

from gymnasium import spaces as gs

from operant.core.errors import UsageError
from operant.core.spaces import Space

PLAIN = (gs.Box, gs.Discrete, gs.MultiDiscrete, gs.MultiBinary)


def named(space: Space, name: str) -> dict[str, Space]:
    """The plain spaces inside `space` by dotted path; a plain space itself is called `name`."""
    leaves = _walk(space, "")
    found = {path or name: leaf for path, leaf in leaves}
    if len(found) < len(leaves):
        paths = [path for path, _ in leaves]
        twice = next(path for path in paths if paths.count(path) > 1)
        raise UsageError(f"space {twice!r}: two parts have this path; rename one in a wrapper")
    return found


def _walk(space: Space, path: str) -> list[tuple[str, Space]]:
    if isinstance(space, gs.Dict):
        items = list(space.spaces.items())
    elif isinstance(space, gs.Tuple):
        items = [(str(i), part) for i, part in enumerate(space.spaces)]
    elif isinstance(space, PLAIN):
        return [(path, space)]
    else:
        kinds = ", ".join(kind.__name__ for kind in PLAIN)
        raise UsageError(
            f"space {path or type(space).__name__!r}: {type(space).__name__} has no fixed shape; "
            f"expected {kinds}, or a Dict or Tuple of these; convert it in a wrapper"
        )
    return [leaf for key, part in items for leaf in _walk(part, f"{path}.{key}" if path else key)]


def flatten(space: Space, value: Any, name: str) -> dict[str, Any]:
    """A value of `space` as a dict by the names that `named` gives."""
    if isinstance(space, gs.Dict):
        parts = [(key, space[key], value[key]) for key in space.spaces]
    elif isinstance(space, gs.Tuple):
        parts = [(str(i), part, value[i]) for i, part in enumerate(space.spaces)]
    else:
        return {name: value}
    flat: dict[str, Any] = {}
    for key, part, inner in parts:
        nested = isinstance(part, gs.Dict | gs.Tuple)
        found = flatten(part, inner, key)
        flat |= {f"{key}.{k}": v for k, v in found.items()} if nested else found
    return flat


def unflatten(space: Space, flat: dict[str, Any], path: str = "", *, name: str = "") -> Any:
    """The inverse of `flatten`."""
    if isinstance(space, gs.Dict):
        return {
            key: unflatten(part, flat, f"{path}.{key}" if path else key)
            for key, part in space.spaces.items()
        }
    if isinstance(space, gs.Tuple):
        return tuple(
            unflatten(part, flat, f"{path}.{i}" if path else str(i))
            for i, part in enumerate(space.spaces)
        )
    return flat[path or name]
