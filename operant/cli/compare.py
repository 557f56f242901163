"""`operant compare`: a table of what groups of runs reached."""

from __future__ import annotations

import json
from pathlib import Path

from operant.cli.options import CompareOptions
from operant.config import parse_flags


def compare(argv: list[str]) -> int:
    """Print what runs reached, a row for those that differ only in the seed; default: all runs."""
    from operant.report.comparison import compare_runs  # noqa: PLC0415
    from operant.report.groups import find_runs  # noqa: PLC0415

    options, words = parse_flags(CompareOptions, argv)
    runs = find_runs(words or [options.runs], Path(options.runs))
    found = compare_runs(runs, options.metric)
    print(json.dumps(found.as_json()) if options.json else found)
    return 0
