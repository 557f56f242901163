"""Frozen dataclasses that refuse values outside their fields' types and ranges."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeVar, get_type_hints

from operant.core.conversion import Limit, convert
from operant.core.schedule import Schedule


@dataclass(frozen=True)
class Range(Limit):
    """Allowed values of a number: from `low` to `high`, `low` itself only if not `above`."""

    low: float = -math.inf
    high: float = math.inf
    above: bool = False

    def __contains__(self, value: Any) -> bool:
        enough = value > self.low if self.above else value >= self.low
        return bool(enough and value <= self.high and -math.inf < value < math.inf)

    def __str__(self) -> str:
        if self.high < math.inf:
            return f"a number {'above' if self.above else 'from'} {self.low:g} to {self.high:g}"
        return f"a finite number {'above' if self.above else 'of at least'} {self.low:g}"


@dataclass(frozen=True)
class PathText(Limit):
    """Text that can be the path of a file or directory."""

    def __contains__(self, value: Any) -> bool:
        return bool(value) and "\0" not in value

    def __str__(self) -> str:
        return "the path of a file or directory"


Positive = Annotated[float, Range(0, above=True)]
NotNegative = Annotated[float, Range(0)]
Fraction = Annotated[float, Range(0, 1)]
Count = Annotated[int, Range(1)]
CountOrZero = Annotated[int, Range(0)]
Rate = Annotated[Schedule, Range(0)]
Share = Annotated[Schedule, Range(0, 1)]
FilePath = Annotated[str, PathText()]


@dataclass(frozen=True, kw_only=True)
class Config:
    """Base of every configuration; checks types and ranges when made, also from Python."""

    # Why names are no settings here that are some elsewhere.
    refused: ClassVar[Mapping[str, str]] = {}

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self), include_extras=True)
        for field in dataclasses.fields(self):
            given = getattr(self, field.name)
            value = convert(field.name, given, hints[field.name])
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
