"""A value as a field keeps it, by the field's annotation: from Python, a file or a flag."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from operant.core.errors import UsageError, suggest
from operant.core.schedule import Schedule

MAX_INTEGER = 2**63 - 1  # what arrays and tensors count with
MAX_FLOAT = 3.4028234663852886e38  # of float32, which networks compute with
MAX_SHOWN = 80  # characters of a value in an error


class Limit(ABC):
    """Which values an annotation allows; as text, what is expected."""

    @abstractmethod
    def __contains__(self, value: Any) -> bool: ...


@dataclass(frozen=True)
class Notation:
    """How values are written: the names of types, and what reads a schedule from text, if any."""

    names: Mapping[Any, str]
    parse_schedule: Callable[[str], Schedule] | None = None


PYTHON = Notation(
    {
        int: "an integer",
        float: "a number",
        bool: "True or False",
        str: "a string",
        Schedule: "a number or a Schedule",
        type(None): "None",
    }
)


def convert(path: str, value: Any, hint: Any, notation: Notation = PYTHON) -> Any:
    """`value` as a field with this annotation keeps it, or a UsageError that begins with `path`.

    A number is a schedule, `1e6` an integer, a list a tuple, and a number of NumPy a plain one.
    """
    if is_number(value):
        _check(path, value, value, hint)
    for member in union_members(hint):
        found = _kept(path, value, member, notation)
        if found is not _REFUSED:
            # A union's members have limits of their own, which only values of their type can miss.
            for limited in (hint, member):
                _check(path, value, found, limited)
            return found
    expected = type_in_words(hint, notation)
    raise UsageError(f"{path} = {quoted(value)}: expected {expected}{_suggestion(value, hint)}")


def union_members(hint: Any) -> tuple[Any, ...]:
    """The types of a union, or the one annotation itself."""
    inner = bare(hint)
    return get_args(inner) if get_origin(inner) in (Union, UnionType) else (hint,)


def bare(hint: Any) -> Any:
    """An annotation without its limits."""
    return bare(get_args(hint)[0]) if get_origin(hint) is Annotated else hint


def type_in_words(hint: Any, notation: Notation = PYTHON) -> str:
    """What an annotation accepts, in words."""
    members = union_members(hint)
    if len(members) > 1:
        return " or ".join(type_in_words(member, notation) for member in members)
    inner = bare(hint)
    if get_origin(inner) is Literal:
        return "one of " + ", ".join(map(repr, get_args(inner)))
    kind = get_origin(inner) or inner
    return notation.names.get(kind) or f"a {getattr(kind, '__name__', kind)}"


def is_number(value: Any) -> bool:
    """Whether this is a real number, also one of NumPy; True and False are none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def quoted(value: Any) -> str:
    """A value as errors show it: long ones are cut."""
    try:
        text = str(value) if isinstance(value, Schedule) else repr(value)
    except ValueError:  # Python writes no integer of thousands of digits
        return "an integer of thousands of digits"
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


_REFUSED = object()  # what stands for no value, since None is one


def _check(path: str, given: Any, kept: Any, hint: Any) -> None:
    """Refuse what is beyond the limits of an annotation."""
    values = (kept.start, kept.end) if isinstance(kept, Schedule) else (kept,)
    for limit in get_args(hint)[1:] if get_origin(hint) is Annotated else ():
        if isinstance(limit, Limit) and any(x is not None and x not in limit for x in values):
            raise UsageError(f"{path} = {quoted(given)}: expected {limit}")


def _kept(path: str, value: Any, hint: Any, notation: Notation) -> Any:
    """`value` as one type keeps it, or `_REFUSED`."""
    inner = bare(hint)
    kind = get_origin(inner) or inner
    if kind is Literal:
        same = (x for x in get_args(inner) if type(x) is type(value) and x == value)
        return next(same, _REFUSED)
    if kind in (int, float, Schedule) and is_number(value):
        return _number(path, value, kind)
    if kind is Schedule and isinstance(value, str) and notation.parse_schedule is not None:
        return _schedule(path, value, notation.parse_schedule)
    if kind is tuple and isinstance(value, list | tuple):
        return _elements(path, value, get_args(inner), notation)
    if kind is dict and isinstance(value, Mapping):
        return _mapping(path, value)
    plain = kind is Any or (kind not in (int, float) and isinstance(value, kind))
    if plain and kind is str:
        value = str.__str__(value)  # of NumPy, or of an enumeration
    return value if plain else _REFUSED


def _number(path: str, value: Any, kind: Any) -> Any:
    if kind is int:
        if not -math.inf < value < math.inf or value != int(value):
            return _REFUSED
        _check_size(path, value, int(value))
        return int(value)
    _check_size(path, value, 0, value)
    if kind is Schedule:
        return _schedule(path, value, lambda number: Schedule(float(number)))
    return _REFUSED if math.isnan(value) else float(value)


def _schedule(path: str, value: Any, make: Callable[[Any], Schedule]) -> Schedule:
    try:
        made = make(value)
    except ValueError as error:
        raise UsageError(f"{path} = {quoted(value)}: {error}") from None
    _check_size(path, value, max(made.over, made.run), made.start, made.end or 0.0)
    return made


def _check_size(path: str, given: Any, integer: int, *numbers: Any) -> None:
    """Refuse what no tensor could hold; infinity is left to ranges."""
    if abs(integer) > MAX_INTEGER:
        raise UsageError(f"{path} = {quoted(given)}: expected an integer below 2**63")
    if any(MAX_FLOAT < abs(x) < math.inf for x in numbers):
        raise UsageError(
            f"{path} = {quoted(given)}: expected at most {MAX_FLOAT:.2g}, as in float32"
        )


def _elements(path: str, value: Any, hints: tuple[Any, ...], notation: Notation) -> Any:
    endless = len(hints) == 2 and hints[1] is Ellipsis
    wanted = hints[:1] * len(value) if endless else hints or (Any,) * len(value)
    if len(wanted) != len(value):
        raise UsageError(f"{path} = {quoted(list(value))}: expected {len(wanted)} values")
    parts = enumerate(zip(value, wanted, strict=True))
    return tuple(convert(f"{path}[{i}]", part, hint, notation) for i, (part, hint) in parts)


def _mapping(path: str, value: Mapping[Any, Any]) -> dict[str, Any]:
    for key in value:
        if not isinstance(key, str):
            raise UsageError(f"{path}: the key {quoted(key)} must be a string; put it in quotes")
    return dict(value)


def _suggestion(value: Any, hint: Any) -> str:
    """The choice that was probably meant, if one is near."""
    choices = get_args(bare(hint)) if get_origin(bare(hint)) is Literal else ()
    texts = [choice for choice in choices if isinstance(choice, str)]
    near = suggest(value, texts) if isinstance(value, str) else ""
    return near if "did you mean" in near else ""
