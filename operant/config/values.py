"""One value converted to the type of its annotation, or an error that says what was expected."""

from __future__ import annotations

import math
import re
import types
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from operant.core.config import check
from operant.core.errors import UsageError, suggest
from operant.core.schedule import Schedule

LINEAR = re.compile(r"linear\(([^,]+),([^,]+)(?:,([^,]+))?\)")
SHARE = re.compile(r"([^%]+)%(?:of(.+))?")
TYPE_NAMES: dict[Any, str] = {
    int: "an integer",
    float: "a number",
    bool: "true or false",
    str: "a string",
    tuple: "a list",
    dict: "a mapping of names to values",
    Schedule: "a number or linear(start, end), with steps or 10% as a third value",
    type(None): "none",
}


def union_members(hint: Any) -> tuple[Any, ...]:
    """The types of a union, or the one annotation itself."""
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def convert(path: str, value: Any, hint: Any) -> Any:
    """`value` converted to its annotated type, or a UsageError that begins with `path`."""
    if len(union_members(hint)) > 1:
        return _convert_union(path, value, union_members(hint))
    if get_origin(hint) is Annotated:
        inner = convert(path, value, get_args(hint)[0])
        check(path, inner, hint)
        return inner
    if get_origin(hint) is Literal:
        return _convert_choice(path, value, get_args(hint))
    kind = get_origin(hint) or hint
    if kind is tuple and isinstance(value, list | tuple):
        return _convert_tuple(path, value, get_args(hint))
    if kind is dict and isinstance(value, Mapping):
        return _convert_dict(path, value)
    return value if kind is Any else _convert_plain(path, value, kind)


def type_in_words(hint: Any) -> str:
    """What an annotation accepts, in words."""
    members = union_members(hint)
    if len(members) > 1:
        return " or ".join(type_in_words(member) for member in members)
    if get_origin(hint) is Annotated:
        return type_in_words(get_args(hint)[0])
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(repr(choice) for choice in get_args(hint))
    kind = get_origin(hint) or hint
    return TYPE_NAMES.get(kind, getattr(kind, "__name__", str(kind)))


def _convert_union(path: str, value: Any, members: tuple[Any, ...]) -> Any:
    if value is None and type(None) in members:
        return None
    others = [member for member in members if member is not type(None)]
    for member in others:
        try:
            return convert(path, value, member)
        except UsageError:
            if len(others) == 1:
                raise
    expected = " or ".join(type_in_words(member) for member in members)
    raise UsageError(f"{path} = {value!r}: expected {expected}")


def _convert_choice(path: str, value: Any, choices: tuple[Any, ...]) -> Any:
    for choice in choices:
        if type(choice) is type(value) and choice == value:
            return choice
    names = ", ".join(repr(choice) for choice in choices)
    raise UsageError(f"{path} = {value!r}: expected one of {names}{_suggestion(value, choices)}")


def _convert_tuple(path: str, value: list[Any] | tuple[Any, ...], kinds: tuple[Any, ...]) -> Any:
    any_length = len(kinds) == 2 and kinds[1] is Ellipsis
    wanted = kinds[:1] * len(value) if any_length else kinds
    if kinds and len(wanted) != len(value):
        raise UsageError(f"{path} = {list(value)!r}: expected {len(wanted)} values")
    parts = zip(value, wanted or (Any,) * len(value), strict=True)
    return tuple(convert(f"{path}[{i}]", part, kind) for i, (part, kind) in enumerate(parts))


def _convert_dict(path: str, value: Mapping[Any, Any]) -> dict[str, Any]:
    for key in value:
        if not isinstance(key, str):
            raise UsageError(f"{path}: the key {key!r} must be a string; put it in quotes")
    return dict(value)


def _convert_plain(path: str, value: Any, kind: Any) -> Any:
    if kind is Schedule:
        return _convert_schedule(path, value)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind is float and number and not math.isnan(value):
        return float(value)
    if kind is not float and type(value) is kind:
        return value
    if kind is int and number and math.isfinite(value) and value == int(value):
        return int(value)  # `1e6` is how people write a million
    raise UsageError(f"{path} = {value!r}: expected {type_in_words(kind)}")


def _convert_schedule(path: str, value: Any) -> Schedule:
    if isinstance(value, Schedule):
        return value
    try:
        if isinstance(value, str):
            return parse_schedule(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return Schedule(float(value))
    except ValueError as error:
        raise UsageError(f"{path} = {value!r}: {error}") from None
    raise UsageError(f"{path} = {value!r}: expected {TYPE_NAMES[Schedule]}")


def _suggestion(value: Any, choices: tuple[Any, ...]) -> str:
    texts = [choice for choice in choices if isinstance(choice, str)]
    near = suggest(value, texts) if isinstance(value, str) else ""
    return near if "did you mean" in near else ""


def parse_schedule(text: str) -> Schedule:
    """A schedule from `3e-4`, `linear(start, end)`, or with `100_000`, `10%` or `10% of 100_000`.

    Without steps it is a share of the run, and `of` says how long that run is.
    """
    match = LINEAR.fullmatch(text.replace(" ", ""))
    try:
        return _parse_line(*match.groups()) if match else Schedule(float(text))
    except (ValueError, OverflowError) as error:
        raise ValueError(f"expected {TYPE_NAMES[Schedule]}: {error}") from error


def _parse_line(start: str, end: str, over: str | None) -> Schedule:
    values = float(start), float(end)
    share = SHARE.fullmatch(over or "100%")
    if share is None:
        return Schedule(*values, _parse_steps(over or ""))
    run = _parse_steps(share[2]) if share[2] else 0
    return Schedule(*values, percent=float(share[1]), run=run)


def _parse_steps(text: str) -> int:
    steps = int(float(text.replace("_", "")))
    if steps < 1:
        raise ValueError(f"a schedule with an end needs `over`, a step of at least 1, not {steps}")
    return steps
