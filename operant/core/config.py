"""Frozen dataclasses that refuse values outside their fields' ranges."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, get_args, get_origin, get_type_hints

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
    """Base of every configuration; checks ranges when made, also from Python."""

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self), include_extras=True)
        for field in dataclasses.fields(self):
            check(field.name, getattr(self, field.name), hints[field.name])


@dataclass(frozen=True, kw_only=True)
class AgentConfig(Config):
    """Base of every agent's configuration: learns once from each chunk unless it says otherwise."""

    network_defaults: ClassVar[Mapping[str, Any]] = {}  # where they differ from NetworkConfig's

    length: Count = 1  # environment steps of every environment between updates

    def gradient_steps(self, steps: int, num_envs: int) -> int:
        """Gradient steps in a run of so many environment steps."""
        return steps // (self.length * num_envs)

    def gradient_rows(self, num_envs: int) -> int:
        """Rows behind one gradient step."""
        return self.length * num_envs


def check(path: str, value: Any, hint: Any) -> None:
    """Refuse a number, or a schedule with one, outside the range its annotation names."""
    numbers = (value.start, value.end) if isinstance(value, Schedule) else (value,)
    for allowed in get_args(hint)[1:] if get_origin(hint) is Annotated else ():
        for number in numbers:
            if isinstance(allowed, Range) and number is not None and number not in allowed:
                raise UsageError(f"{path} = {number!r}: expected {allowed}")
