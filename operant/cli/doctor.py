"""The command that examines a run directory."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from operant.config import parse_flags
from operant.core.config import Config, FilePath
from operant.core.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class DoctorOptions(Config):
    """What to print, and where runs are."""

    json: bool = False  # print what was found as one JSON object
    runs: FilePath = "runs"  # directory of run directories


def doctor(argv: list[str]) -> int:
    """Examine a run: checkpoints, log, links, versions; exit code 1 if something is wrong."""
    from operant.session.examine import examine  # noqa: PLC0415
    from operant.session.run_directory import locate_run  # noqa: PLC0415

    options, words = parse_flags(DoctorOptions, argv)
    if len(words) > 1:
        raise UsageError(f"{words[1]!r}: expected one name at most, and {words[0]!r} is one")
    run = locate_run(words[0] if words else None, Path(options.runs))
    found = examine(run)
    if options.json:
        report = {"run": str(run), "healthy": found.healthy, "resumes": found.resumes}
        print(json.dumps(report | {"findings": [one._asdict() for one in found.findings]}))
    else:
        for one in found.findings:
            print(f"{'fault' if one.fault else 'note'}: {one.text}")
        print(f"{run}: {found.resumes}")
    return 0 if found.healthy else 1
