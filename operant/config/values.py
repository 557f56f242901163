"""Values as files and flags write them, converted to the type of their annotation."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from operant.core import conversion
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
    steps = int(float(text))
    if steps < 1:
        raise ValueError(f"a schedule with an end needs `over`, a step of at least 1, not {steps}")
    return steps


WRITTEN = conversion.Notation(TYPE_NAMES, parse_schedule)
convert = partial(conversion.convert, notation=WRITTEN)
type_in_words = partial(conversion.type_in_words, notation=WRITTEN)
