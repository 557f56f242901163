"""Groups of runs beside each other: what their seeds reached, as a table and as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from operant.core.errors import UsageError
from operant.report.groups import EVALUATION, Group, Member, group_runs
from operant.report.profile import profile
from operant.report.progress import in_short
from operant.report.statistics import interval, iqm

LABEL_WIDTH = 40  # characters after which a label goes on in the next line
# Of the longest run; steps in which environments only reset make runs end a little apart.
SAME_LENGTH = 0.95
HEADINGS = ("", "seeds", "IQM", "95 % interval", "min to max", "steps", "steps/s")


class Row(NamedTuple):
    """One group: what each seed reached at its last evaluation, and figures over seeds."""

    env: str
    agent: str
    label: str
    settings: dict[str, Any]  # what tells it from the other groups
    seeds: list[int]
    values: list[float]  # of each seed
    iqm: float
    interval: tuple[float, float] | None  # none of one seed
    steps: list[int]  # of each seed, at the value
    steps_per_second: float | None  # mean over seeds


class Comparison(NamedTuple):
    """Rows of a table, one for each group of runs; as text, a table for each environment."""

    metric: str
    rows: list[Row]

    def __str__(self) -> str:
        envs = dict.fromkeys(row.env for row in self.rows)
        return "\n\n".join(
            f"{env}: {self.metric}\n{_table([row for row in self.rows if row.env == env])}"
            for env in envs
        )

    def as_json(self) -> list[dict[str, Any]]:
        """An object for each group."""
        return [
            {
                **row._asdict(),
                "metric": self.metric,
                "min": min(row.values),
                "max": max(row.values),
            }
            for row in self.rows
        ]


def compare_runs(runs: Sequence[Path], metric: str = EVALUATION) -> Comparison:
    """The last value of `metric` of every run, in groups of runs that differ only in the seed."""
    return Comparison(metric, [_row(group, metric) for group in group_runs(runs, metric)])


def _row(group: Group, metric: str) -> Row:
    last = [member.metrics[metric] for member in group.members]
    values = [float(found[-1]) for _, found in last]
    bounds = interval(np.array(values))
    paces = [pace for member in group.members if (pace := _pace(member)) is not None]
    return Row(
        group.env,
        group.agent,
        group.label,
        group.differing,
        [member.seed for member in group.members],
        values,
        iqm(values),
        None if bounds is None else (float(bounds[0]), float(bounds[1])),
        [int(steps[-1]) for steps, _ in last],
        float(np.mean(paces)) if paces else None,
    )


def _pace(member: Member) -> float | None:
    """Steps per second over the whole run; None if its clock was not logged."""
    try:
        return profile(member.run).pace
    except UsageError:
        return None


def _table(rows: Sequence[Row]) -> str:
    """Aligned columns; a long label goes on below."""
    cells = [HEADINGS, *map(_cells, rows)]
    labels = [textwrap.wrap(line[0], LABEL_WIDTH) or [""] for line in cells]
    sizes = [max(len(text) for lines in labels for text in lines)]
    sizes += [max(len(line[i]) for line in cells) for i in range(1, len(HEADINGS))]
    lines = []
    for label, (_, *others) in zip(labels, cells, strict=True):
        right = (f"{text:>{size}}" for text, size in zip(others, sizes[1:], strict=True))
        lines += ["  ".join([f"{label[0]:{sizes[0]}}", *right]), *label[1:]]
    return "\n".join(lines)


def _cells(row: Row) -> tuple[str, ...]:
    low, high = min(row.values), max(row.values)
    first, last = min(row.steps), max(row.steps)
    pace = row.steps_per_second
    return (
        row.label,
        str(len(row.seeds)),
        in_short(row.iqm),
        "–" if row.interval is None else " to ".join(map(in_short, row.interval)),
        f"{in_short(low)} to {in_short(high)}",
        f"{last:,}" if first >= SAME_LENGTH * last else f"{first:,} to {last:,}",
        "–" if pace is None else f"{pace:,.0f}",
    )
