"""Examines a run directory without changing it or importing what it names."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from operant.config import load_yaml
from operant.core.durable import open_regular
from operant.core.errors import CheckpointError, UsageError
from operant.session.checkpoint import checkpoint
from operant.session.checkpoint.finite import not_finite
from operant.session.log import METRICS, TIMING, read_metrics
from operant.session.run_directory import (
    CHECKPOINTS,
    CONFIG,
    DONE,
    PROVENANCE,
    check_plain,
    holder,
)
from operant.session.same_run import changes
from operant.session.versions import other_versions


class Finding(NamedTuple):
    """Something that was found: a fault, or what is merely worth knowing."""

    fault: bool
    text: str


class Diagnosis(NamedTuple):
    """What was found in a run, and from where it can go on."""

    findings: list[Finding]
    resumes: str

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong."""
        return not any(finding.fault for finding in self.findings)


def examine(run: Path) -> Diagnosis:
    """Look at every file of a run."""
    try:
        check_plain(run)
    except UsageError as error:
        return Diagnosis([Finding(True, str(error))], "cannot be resumed")
    findings = [*_files(run), *_log_lines(run)]
    usable: list[checkpoint.Checkpoint] = []
    for path in checkpoint.listing(run / CHECKPOINTS):
        try:
            found = checkpoint.load(path)
        except CheckpointError as error:
            findings.append(Finding(True, str(error)))
            continue
        problems = list(_checkpoint(found))
        findings += problems
        if not any(problem.fault for problem in problems):
            usable.append(found)
    if usable:
        findings += [*_log_against(run, usable[-1]), *_differences(run, usable[-1])]
    return Diagnosis(findings, _resumes(run, usable))


def _files(run: Path) -> Iterator[Finding]:
    try:
        load_yaml(run / CONFIG)
    except (UsageError, OSError) as error:
        yield Finding(True, str(error))
    for name in (PROVENANCE, DONE):
        if (run / name).exists() and not isinstance(_json(run / name), dict):
            yield Finding(True, f"{run / name}: is not a JSON object")
    if process := holder(run):
        yield Finding(False, f"{run}: is being written by process {process}")


def _json(path: Path) -> Any:
    try:
        with open_regular(path) as file:
            return json.loads(file.read())
    except (OSError, ValueError, RecursionError):
        return None


def _log_lines(run: Path) -> Iterator[Finding]:
    try:
        metrics = read_metrics(run)
    except UsageError as error:
        yield Finding(True, str(error))
        return
    steps, _ = metrics.get("time/total_timesteps", ((), ()))
    backwards = [int(b) for a, b in pairwise(steps) if b <= a]
    if backwards:
        yield Finding(True, f"{run / METRICS}: steps go backwards at step {backwards[0]:,}")


def _checkpoint(found: checkpoint.Checkpoint) -> Iterator[Finding]:
    agent = found.state.get("container", {}).get("agent", {})
    if broken := not_finite(agent):
        names = ", ".join(broken[:3])
        yield Finding(True, f"{found.path}: {names} hold NaN or infinity")
    for reason in found.manifest["reasons"]:
        yield Finding(False, f"{found.path}: not exact: {reason}")


def _log_against(run: Path, newest: checkpoint.Checkpoint) -> Iterator[Finding]:
    saved = newest.state.get("log", {})
    for name in (METRICS, TIMING):
        size, sha256 = int(saved.get(name, 0)), saved.get("sha256", {}).get(name)
        content = (run / name).read_bytes()[:size] if (run / name).exists() else b""
        if len(content) < size:
            lost = f"has {len(content)} bytes, but had {size} at {newest.path.name}; lines are lost"
            yield Finding(True, f"{run / name}: {lost}")
        elif sha256 is not None and hashlib.sha256(content).hexdigest() != sha256:
            yield Finding(True, f"{run / name}: was altered since {newest.path.name}")


def _differences(run: Path, newest: checkpoint.Checkpoint) -> Iterator[Finding]:
    """Libraries and settings that are not those of the newest checkpoint."""
    for version in other_versions(newest.manifest["versions"]):
        yield Finding(False, f"{newest.path}: was saved with {version}")
    with suppress(UsageError):  # told before
        for change in changes(newest.manifest, load_yaml(run / CONFIG)):
            remedy = "; resuming needs --force" if change.decisive else ""
            yield Finding(False, f"{run / CONFIG}: {change} at {newest.path.name}{remedy}")


def _resumes(run: Path, usable: list[checkpoint.Checkpoint]) -> str:
    if not usable:
        return "cannot be resumed: there is no checkpoint that is complete and finite"
    newest = usable[-1]
    finished = " (the run is finished: train on with --steps)" if (run / DONE).exists() else ""
    exactly = "bit for bit" if newest.manifest["exact"] else "with new episodes"
    return f"can be resumed from step {newest.step:,}, {exactly}{finished}"
