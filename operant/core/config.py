"""Frozen dataclasses that refuse values outside their fields' types and ranges."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from operant.core.errors import UsageError
from operant.core.schedule import Schedule


@dataclass(frozen=True)
class Range:
    """Allowed values of a number: from `low` to `high`, `low` itself only if not `above`."""

    low: float = -math.inf
    high: float = math.inf
    above: bool = False

    def __contains__(self, value: float) -> bool:
        enough = value > self.low if self.above else value >= self.low
        return enough and value <= self.high and math.isfinite(value)

    def __str__(self) -> str:
        if self.high < math.inf:
            return f"a number {'above' if self.above else 'from'} {self.low:g} to {self.high:g}"
        return f"a finite number {'above' if self.above else 'of at least'} {self.low:g}"


Positive = Annotated[float, Range(0, above=True)]
NotNegative = Annotated[float, Range(0)]
Fraction = Annotated[float, Range(0, 1)]
Count = Annotated[int, Range(1)]
CountOrZero = Annotated[int, Range(0)]
Rate = Annotated[Schedule, Range(0)]
Share = Annotated[Schedule, Range(0, 1)]


@dataclass(frozen=True, kw_only=True)
class Config:
    """Base of every configuration; checks types and ranges when made, also from Python."""

    # Why names are no settings here that are some elsewhere.
    refused: ClassVar[Mapping[str, str]] = {}

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self), include_extras=True)
        for field in dataclasses.fields(self):
            given = getattr(self, field.name)
            value = checked(field.name, given, hints[field.name])
            if value is not given:
                object.__setattr__(self, field.name, value)  # as frozen dataclasses do themselves


@dataclass(frozen=True, kw_only=True)
class AgentConfig(Config):
    """Base of every agent's configuration: learns once from each chunk unless it says otherwise."""

    # Settings of its network that differ from NetworkConfig's own defaults.
    network_defaults: ClassVar[tuple[tuple[str, Any], ...]] = ()

    length: Count = 1  # environment steps of every environment between updates

    def gradient_steps(self, steps: int, num_envs: int) -> int:
        """Gradient steps in a run of so many environment steps."""
        return steps // (self.length * num_envs)

    def gradient_rows(self, num_envs: int) -> int:
        """Rows behind one gradient step."""
        return self.length * num_envs


C = TypeVar("C", bound=Config)


def variant(base: type[C], name: str, about: str, **defaults: Any) -> type[C]:
    """The settings of `base` with other defaults, as a class called `name` in the same module."""
    hints, changed = get_type_hints(base, include_extras=True), base(**defaults)
    fields = [(k, hints[k], getattr(changed, k)) for k in defaults]
    namespace = {"__module__": base.__module__, "__doc__": about}
    made: type[C] = dataclasses.make_dataclass(
        name, fields, bases=(base,), namespace=namespace, frozen=True, kw_only=True
    )
    return made


def check(path: str, value: Any, hint: Any) -> None:
    """Refuse a number, or a schedule with one, outside the range its annotation names."""
    numbers = (value.start, value.end) if isinstance(value, Schedule) else (value,)
    for allowed in get_args(hint)[1:] if get_origin(hint) is Annotated else ():
        for number in filter(is_number, numbers):
            if isinstance(allowed, Range) and number not in allowed:
                raise UsageError(f"{path} = {number!r}: expected {allowed}")


def checked(path: str, value: Any, hint: Any) -> Any:
    """`value` as a field with this annotation keeps it; a UsageError if it is of another type.

    A number is a schedule, `1e6` an integer, a list a tuple, and a number of NumPy a plain one.
    """
    check(path, value, hint)
    members = _members(hint)
    for member in members:
        # A union's members have ranges of their own, which only values of their type can miss.
        found = _kept(path, value, member)
        if found is not _REFUSED:
            check(path, found, member)
            return found
    words = " or ".join(map(_in_words, members))
    raise UsageError(f"{path} = {value!r}: expected {words}")


def is_number(value: Any) -> bool:
    """Whether this is a real number, also one of NumPy; True and False are none."""
    return isinstance(value, Real) and not isinstance(value, bool)


_REFUSED = object()  # what stands for no value, since None is one
_WORDS: dict[Any, str] = {
    int: "an integer",
    float: "a number",
    bool: "True or False",
    str: "a string",
    Schedule: "a number or a Schedule",
    type(None): "None",
}


def _members(hint: Any) -> tuple[Any, ...]:
    """The types of a union, or the one type, without its range."""
    hint = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _kept(path: str, value: Any, hint: Any) -> Any:
    """`value` as one type keeps it, or `_REFUSED`."""
    hint = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    kind = get_origin(hint) or hint
    if kind is Literal:
        same = (x for x in get_args(hint) if type(x) is type(value) and x == value)
        return next(same, _REFUSED)
    if kind in (int, float, Schedule) and is_number(value):
        return _number(value, kind)
    if kind is tuple and isinstance(value, list | tuple):
        return _elements(path, value, get_args(hint))
    if kind is dict:
        return value if isinstance(value, Mapping) else _REFUSED
    plain = kind is Any or (kind not in (int, float) and isinstance(value, kind))
    return value if plain else _REFUSED


def _number(value: Any, kind: Any) -> Any:
    if kind is Schedule:
        return Schedule(float(value))
    if kind is float:
        plain = value if type(value) in (int, float) else float(value)
        return _REFUSED if math.isnan(value) else plain
    whole = math.isfinite(value) and value == int(value)  # `1e6` is how people write a million
    return int(value) if whole else _REFUSED


def _elements(path: str, value: Any, hints: tuple[Any, ...]) -> Any:
    endless = len(hints) == 2 and hints[1] is Ellipsis
    wanted = hints[:1] * len(value) if endless else hints or (Any,) * len(value)
    if len(wanted) != len(value):
        return _REFUSED
    parts = enumerate(zip(value, wanted, strict=True))
    return tuple(checked(f"{path}[{i}]", part, hint) for i, (part, hint) in parts)


def _in_words(hint: Any) -> str:
    hint = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    kind = get_origin(hint) or hint
    if kind is Literal:
        return "one of " + ", ".join(map(repr, get_args(hint)))
    return _WORDS.get(kind, f"a {getattr(kind, '__name__', kind)}")
