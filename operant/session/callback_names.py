"""Callbacks by name, as configurations hold them: `module:function` or `module:Class(arguments)`.

Arguments are literals of Python; nothing else is evaluated.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterable
from typing import Any

from operant.core import objects
from operant.core.errors import UsageError

SETTING = "callbacks"
OPENING, CLOSING, QUOTES = "([{", ")]}", "'\""
_given: dict[str, Any] = {}  # objects that were passed, by names with arguments
Call = tuple[str, list[Any], dict[str, Any]]


def split_names(texts: Iterable[str]) -> tuple[str, ...]:
    """Names that commas separate, except for commas between brackets or quotes."""
    found, depth, quote = [""], 0, ""
    for letter in ",".join(texts):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in QUOTES:
            quote = letter
        depth += 0 if quote else (letter in OPENING) - (letter in CLOSING)
        if letter == "," and not depth and not quote:
            found.append("")
        else:
            found[-1] += letter
    return tuple(name.strip() for name in found if name.strip())


def object_name(text: str) -> str:
    """The name of the object alone, `module:Class`, without arguments."""
    return text.partition("(")[0].strip()


def name_of_callback(thing: Any) -> str:
    """The name to save a callback under; a dataclass is made again from its fields elsewhere."""
    if isinstance(thing, str):
        return thing
    kind = type(thing)
    if not dataclasses.is_dataclass(thing) or isinstance(thing, type):
        return objects.name_of(thing)
    values = {f.name: getattr(thing, f.name) for f in dataclasses.fields(thing) if f.init}
    text = f"{objects.name_of(kind)}({', '.join(f'{k}={v!r}' for k, v in values.items())})"
    if objects.is_local(text) or not _is_literal(text):
        return objects.name_of(thing)
    _given[text] = thing
    return text


def find_callback(text: str) -> Any:
    """The callback of this name: the very object that was passed here, or a new one."""
    if text in _given:
        return _given[text]
    name, args, kwargs = parse_call(text)
    try:
        found = objects.find(name, SETTING)
    except UsageError as error:
        raise UsageError(f"{error}; a run is resumed without it by --without-callbacks") from error
    if not isinstance(found, type) and "(" not in text:
        return found
    try:
        return found(*args, **kwargs)
    except TypeError as error:
        raise UsageError(f"{SETTING} = {text!r}: cannot be made: {error}") from error


def parse_call(text: str) -> Call:
    """The name of an object and the arguments behind it, which must be literals."""
    name, bracket, rest = text.partition("(")
    if not objects.is_name(name.strip()):
        raise UsageError(
            f"{SETTING} = {text!r}: expected module:function, or module:Class with arguments, "
            f"such as operant.callbacks:StopAtReturn(475)"
        )
    if not bracket:
        return name, [], {}
    try:
        call = ast.parse(f"f({rest}", mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise ValueError("more than one call")
        named = {str(k.arg): ast.literal_eval(k.value) for k in call.keywords if k.arg}
        if len(named) < len(call.keywords):
            raise ValueError("** is not allowed")
        return name.strip(), [ast.literal_eval(x) for x in call.args], named
    except (SyntaxError, ValueError) as error:
        raise UsageError(
            f"{SETTING} = {text!r}: expected numbers, strings and lists of these as arguments "
            f"({error})"
        ) from None


def _is_literal(text: str) -> bool:
    try:
        parse_call(text)
    except UsageError:
        return False
    return True
