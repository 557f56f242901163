"""Public names of a package, imported when they are first asked for.

A package lists them as imports under `if TYPE_CHECKING`, where type checkers and editors see them;
at run time nothing is imported before somebody asks, since torch takes two seconds.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any


def lazy_names(package: str) -> Callable[[str], Any]:
    """A `__getattr__` for `package`, which finds the names that its `__init__` lists."""
    listed: dict[str, tuple[str, str]] = {}

    def find(name: str) -> Any:
        if not listed:
            listed.update(_listed(package))
        if name == "__all__":
            return sorted(listed)
        if name not in listed:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, original = listed[name]
        found = getattr(importlib.import_module(module), original)
        setattr(sys.modules[package], name, found)  # the next time it is simply there
        return found

    return find


def _listed(package: str) -> dict[str, tuple[str, str]]:
    """By public name: the module that defines it, and what that calls it."""
    import ast  # noqa: PLC0415  # milliseconds that whoever asks for no name need not wait
    import pkgutil  # noqa: PLC0415

    source = pkgutil.get_data(package, "__init__.py") or b""
    blocks = [node for node in ast.parse(source).body if isinstance(node, ast.If)]
    return {
        alias.asname or alias.name: (str(line.module), alias.name)
        for block in blocks
        for line in block.body
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
    }
