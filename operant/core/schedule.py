"""Numbers that change with the count of environment steps, written as values."""

from __future__ import annotations

import math
from dataclasses import dataclass

WHOLE = 100.0  # percent


@dataclass(frozen=True, slots=True)
class Schedule:
    """`start` at step zero, then in a straight line to `end`, and constant after.

    The end is reached at step `over`; where no steps are given, after `percent` of the run, the
    whole run by default. `over` then follows from `run`, the run's length in steps.
    """

    start: float
    end: float | None = None
    over: int = 0
    percent: float | None = None
    run: int = 0

    def __post_init__(self) -> None:
        for value in (self.start, self.end):
            if value is not None and (not math.isfinite(value) or value < 0):
                raise ValueError(
                    f"a schedule's values must be finite and not negative, not {value}"
                )
        if self.over < 0 or (self.end is None and self.over):
            raise ValueError("a schedule with an end needs `over`, the step at which it is reached")
        if self.end is not None and self.over == 0 and self.percent is None:
            object.__setattr__(self, "percent", WHOLE)
        if self.percent is not None:
            self._set_steps(self.percent)

    def _set_steps(self, percent: float) -> None:
        if self.end is None or not 0 < percent <= WHOLE:
            raise ValueError(
                f"a schedule's share of the run must be above 0 and at most 100 percent, and it "
                f"needs an end, not {percent} to {self.end}"
            )
        if self.run < 0:
            raise ValueError(f"a schedule's run must be a number of steps, not {self.run}")
        steps = max(1, round(percent * self.run / 100)) if self.run else 0
        object.__setattr__(self, "over", steps)

    def of_run(self, steps: int) -> Schedule:
        """The schedule in a run of so many steps: a share of it becomes steps."""
        if self.percent is None:
            return self
        return Schedule(self.start, self.end, percent=self.percent, run=steps)

    def longer(self, times: int) -> Schedule:
        """The same values over so many times the steps."""
        if self.percent is not None:
            return Schedule(self.start, self.end, percent=self.percent, run=self.run * times)
        return Schedule(self.start, self.end, self.over * times)

    def __call__(self, step: int) -> float:
        if self.end is None:
            return self.start
        if not self.over:
            raise ValueError(
                f"{self} is a share of a run whose length is not known; give steps, as in "
                f"Schedule({self.start}, {self.end}, 10_000)"
            )
        share = min(1.0, step / self.over)
        return self.start + share * (self.end - self.start)

    def __str__(self) -> str:
        if self.end is None:
            return repr(self.start)
        line = f"{self.start!r}, {self.end!r}"
        if self.percent is None:
            return f"linear({line}, {self.over})"
        share = f"{float(self.percent)!r}".removesuffix(".0") + "%"
        if self.run:
            return f"linear({line}, {share} of {self.run})"
        return f"linear({line})" if self.percent == WHOLE else f"linear({line}, {share})"
