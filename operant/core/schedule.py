"""Numbers that change with the count of environment steps, written as values."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Schedule:
    """`start` at step zero, then in a straight line to `end` at step `over`, and constant after."""

    start: float
    end: float | None = None
    over: int = 0

    def __post_init__(self) -> None:
        for value in (self.start, self.end):
            if value is not None and (not math.isfinite(value) or value < 0):
                raise ValueError(
                    f"a schedule's values must be finite and not negative, not {value}"
                )
        if (self.end is not None) != (self.over > 0):
            raise ValueError("a schedule with an end needs `over`, the step at which it is reached")

    def __call__(self, step: int) -> float:
        if self.end is None:
            return self.start
        share = min(1.0, step / self.over)
        return self.start + share * (self.end - self.start)

    def __str__(self) -> str:
        if self.end is None:
            return repr(self.start)
        return f"linear({self.start!r}, {self.end!r}, {self.over})"
