"""Whether a run that is resumed is still the one that was saved, by its settings and libraries."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from operant.config.yaml_file import parse_yaml
from operant.core.errors import CheckpointError, UsageError
from operant.session.checkpoint import checkpoint
from operant.session.checkpoint.manifest import read_manifest
from operant.session.run_directory import CHECKPOINTS, CONFIG
from operant.session.versions import other_versions

SETTINGS = "settings"  # in the manifest of a checkpoint: those of the run, as YAML
# What decides how long a run is, what is shown of it and where it is kept, but not what it learns.
HARMLESS = re.compile(
    r"steps|log_every|callbacks|(eval|checkpoint)\..*"
    r"|env\.(workers|step_timeout|max_restarts)|agent\.replay_(dir|compress)"
)
ROUNDING = re.compile(r"threads|device|compile")  # the same computation, up to rounding
# Values that give the same rollouts and save the same state.
ALIKE: dict[str, set[Any]] = {
    "sampler": {"serial", "parallel", "alternating"},
    "env.manager": {"simple", "subproc"},
}
SHARE_OF_RUN = re.compile(r"% of \d+\)$")
MAX_LISTED = 8  # changes that an error lists


class Change(NamedTuple):
    """A setting that is not what it was."""

    name: str
    before: Any
    now: Any

    @property
    def decisive(self) -> bool:
        """Whether it makes another run of it."""
        if self.name in ALIKE:
            return not {self.before, self.now} <= ALIKE[self.name]
        return not (HARMLESS.fullmatch(self.name) or ROUNDING.fullmatch(self.name))

    def __str__(self) -> str:
        return f"{self.name} = {self.now!r}, was {self.before!r}"


def check_same_run(
    run: Path, settings: Mapping[str, Any], force: bool, warn: Callable[[str], None]
) -> None:
    """Say what differs from the newest checkpoint; refuse what makes it another run, unless forced.

    `settings` are those in the run's configuration file.
    """
    manifest = newest_manifest(run)
    if manifest is None:
        return
    step = manifest["step"]
    changed = changes(manifest, settings)
    decisive = [change for change in changed if change.decisive]
    if decisive and not force:
        raise UsageError(
            f"{run / CONFIG}: changed since step {step}: {_listed(decisive)}; this would be "
            f"another run: put back what was, or train a new one with --config and --from; "
            f"--force (in Python, force=True) goes on with it all the same"
        )
    if changed:
        warn(f"{run / CONFIG}: changed since step {step}: {_listed(changed)}{_meaning(changed)}")
    if versions := other_versions(manifest["versions"]):
        warn(
            f"{run}: was saved with {'; '.join(versions)}: it goes on from step {step}, but not "
            f"bit for bit as it would have"
        )


def newest_manifest(run: Path) -> dict[str, Any] | None:
    """The manifest of the newest checkpoint that has a whole one."""
    for path in reversed(checkpoint.listing(run / CHECKPOINTS)):
        with suppress(CheckpointError):
            return read_manifest(path)
    return None


def changes(manifest: Mapping[str, Any], settings: Mapping[str, Any]) -> list[Change]:
    """Settings that a checkpoint was saved with, and that are others now.

    A schedule that is a share of the run follows from `steps`.
    """
    text = manifest["extra"].get(SETTINGS)
    saved = parse_yaml(text, SETTINGS) if isinstance(text, str) else {}
    before = dict(_leaves(saved)) if isinstance(saved, dict) else {}
    now = dict(_leaves(settings))
    longer = f"% of {settings.get('steps')})"
    return [
        Change(name, old, now[name])
        for name, old in before.items()
        if name in now and now[name] not in (old, _stretched(old, longer))
    ]


def _leaves(tree: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Settings by their names, such as `agent.lr`."""
    for section, value in tree.items():
        if isinstance(value, Mapping):
            yield from ((f"{section}.{name}", x) for name, x in value.items())
        else:
            yield section, value


def _stretched(value: Any, longer: str) -> Any:
    return SHARE_OF_RUN.sub(longer, value) if isinstance(value, str) else value


def _listed(changed: Sequence[Change]) -> str:
    more = f"; and {len(changed) - MAX_LISTED} more" if len(changed) > MAX_LISTED else ""
    return "; ".join(map(str, changed[:MAX_LISTED])) + more


def _meaning(changed: Sequence[Change]) -> str:
    if any(change.decisive for change in changed):
        return "; from here on it is another run"
    if any(ROUNDING.fullmatch(change.name) for change in changed):
        return "; from here on numbers may round differently"
    return ""
