"""Classes and functions of the user's own, by name: `module:Name`, as a configuration holds them.

What is passed as an object in Python is known here by its name, so that this process uses the very
object, while a worker or a later command imports it.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from functools import reduce
from typing import Any

from operant.core.errors import UsageError

NAME = re.compile(r"(?P<module>[^\W\d][\w.]*):(?P<name>[^\W\d][\w.]*)")
HERE = "here"  # in the place of a module: known only to the process that was given the object
_given: dict[str, Any] = {}  # objects that were passed, by the names they are saved under
_importing: list[str] = []  # modules that are being imported for what they define


def is_name(text: str) -> bool:
    """Whether this can name an object of a module; `module:Name-v0` is an id of Gymnasium."""
    return NAME.fullmatch(text) is not None


def is_local(text: str) -> bool:
    """Whether this names an object that no other process can find, such as a lambda."""
    return text.startswith(f"{HERE}:")


def name_of(thing: Any) -> str:
    """The name to save an object under; a string is the name of something already."""
    if isinstance(thing, str):
        return thing
    name = f"{_module_of(thing)}:{getattr(thing, '__qualname__', '')}"
    if not _holds(thing):
        kind = getattr(thing, "__name__", type(thing).__name__).strip("<>")
        same = [x for x in _given if x.startswith(f"{HERE}:{kind}")]
        name = next((x for x in same if _given[x] is thing), f"{HERE}:{kind}{len(same) or ''}")
    _given[name] = thing
    return name


def find(name: str, setting: str) -> Any:
    """The object of this name; errors call it the value of `setting`."""
    if name in _given:
        return _given[name]
    if is_local(name):
        raise UsageError(
            f"{setting} = {name!r}: was passed as an object that only that program had; "
            f"define it at the top level of a module, which can be imported anywhere"
        )
    module, _, path = name.partition(":")
    try:
        _importing.append(module)
        holder = importlib.import_module(module)
    except ImportError as error:
        raise UsageError(
            f"{setting} = {name!r}: module {module!r} cannot be imported ({error}); "
            f"expected one in the current directory or on the Python path"
        ) from error
    finally:
        _importing.remove(module)
    try:
        return reduce(getattr, path.split("."), holder)
    except AttributeError:
        raise UsageError(f"{setting} = {name!r}: module {module!r} has no {path!r}") from None


def check_not_imported() -> None:
    """Raise an error if this is called while a module is imported for what it defines."""
    if _importing:
        raise UsageError(
            f"{_importing[-1]}: trains whenever it is imported, also for a class that it defines; "
            f'put what it runs under `if __name__ == "__main__":`'
        )


def _module_of(thing: Any) -> str:
    """The module that another process would import; a script is a module by its file's name."""
    module = getattr(thing, "__module__", None) or type(thing).__module__
    if module != "__main__":
        return module
    main = sys.modules["__main__"]
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    return spec.name if spec else inspect.getmodulename(file) or HERE if file else HERE


def _holds(thing: Any) -> bool:
    """Whether the module of a thing has it under the thing's own name."""
    name = getattr(thing, "__qualname__", "<>")
    if "<" in name or _module_of(thing) == HERE:
        return False
    module = sys.modules.get(thing.__module__)
    return reduce(lambda x, part: getattr(x, part, None), name.split("."), module) is thing
