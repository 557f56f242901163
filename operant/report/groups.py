"""Runs that differ only in the seed, as groups, and what tells the groups apart."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from operant.config import load_yaml
from operant.core.errors import UsageError, suggest
from operant.session.log import METRICS, Series, read_metrics
from operant.session.run_directory import CONFIG, find_run, is_run

EVALUATION = "eval/mean_reward"
# Settings that do not change what is learned: where and how fast it is computed, and how often it
# is looked at. Runs that differ only in these, and in the seed, belong together.
IGNORED = re.compile(
    r"seed|device|threads|compile|log_every|eval\..*|checkpoint\..*|agent\.replay_dir"
    r"|env\.(manager|workers|step_timeout|max_restarts)"
)
ASYNC = "async"  # the one sampler whose rollouts are others: its weights are one rollout old
LENGTH = re.compile(r"% of \d+")  # in a schedule that is a share of a run, the length of that run
MAX_SHOWN = 5  # settings in a label
ABSENT = "unset"  # what stands for a setting that a run does not have


class Member(NamedTuple):
    """One run: its directory, its seed, its other settings by dotted path, and its metrics."""

    run: Path
    seed: int
    settings: dict[str, Any]
    metrics: dict[str, Series]  # only finite values


class Group(NamedTuple):
    """Runs that differ only in the seed; `differing` are settings that other groups have not."""

    env: str
    agent: str
    label: str
    differing: dict[str, Any]
    members: list[Member]


def find_runs(names: Sequence[str], root: Path) -> list[Path]:
    """The runs that `names` mean: runs by directory or name, and directories that hold runs.

    Other files are passed over: a pattern such as `runs/sweep/*` also finds those of the sweep.
    """
    found: dict[Path, Path] = {}
    for name in names:
        for run in _expand(Path(name), root):
            found.setdefault(run.resolve(), run)
    if not found:
        raise UsageError(f"{', '.join(names) or root}: holds no run; name the directory of one")
    return list(found.values())


def _expand(path: Path, root: Path) -> list[Path]:
    for candidate in (path, root / path):
        if candidate.is_file():
            return []
        inside = sorted(candidate.iterdir()) if candidate.is_dir() else []
        runs = [] if is_run(candidate) else [child for child in inside if is_run(child)]
        if runs:
            return runs
    return [find_run(path, root)]


def group_runs(runs: Sequence[Path], metric: str) -> list[Group]:
    """The runs that have values of `metric`, in groups; a warning names those that have none."""
    members = [_member(run) for run in runs]
    having = [member for member in members if metric in member.metrics]
    if not having:
        names = {name for member in members for name in member.metrics}
        where = members[0].run if members else "no runs"
        raise UsageError(f"{where}: has no values of {metric!r} yet{suggest(metric, names)}")
    for member in members:
        if metric not in member.metrics:
            warnings.warn(f"{member.run}: has no values of {metric!r} yet", stacklevel=2)
    together: dict[str, list[Member]] = {}
    for member in having:
        together.setdefault(repr(sorted(member.settings.items())), []).append(member)
    plain = [list(_one_per_seed(members, metric)) for members in together.values()]
    envs = dict.fromkeys(members[0].settings["env.id"] for members in plain)
    return [group for env in envs for group in _labelled(env, plain)]


def _member(run: Path) -> Member:
    tree = dict(_flat(load_yaml(run / CONFIG)))
    settings = {k: _comparable(value) for k, value in tree.items() if not IGNORED.fullmatch(k)}
    if settings.pop("sampler", None) == ASYNC:
        settings["sampler"] = ASYNC
    for path in ("algorithm", "env.id"):
        if not isinstance(settings.get(path), str):
            raise UsageError(f"{run / CONFIG}: {path} is missing; expected the file of a run")
    logged = read_metrics(run) if (run / METRICS).exists() else {}  # it may not have begun
    finite = {name: _finite(series) for name, series in logged.items()}
    metrics = {name: series for name, series in finite.items() if len(series[0])}
    return Member(run, tree.get("seed", 0), settings, metrics)


def _flat(tree: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Every setting by its dotted path."""
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def _comparable(value: Any) -> Any:
    """A schedule that is a share of a run, without how long that is: `steps` says it."""
    return LENGTH.sub("%", value) if isinstance(value, str) else value


def _finite(series: Series) -> Series:
    steps, values = series
    return steps[np.isfinite(values)], values[np.isfinite(values)]


def _one_per_seed(members: Iterable[Member], metric: str) -> Iterator[Member]:
    """Of several runs of one seed, the one that came furthest: repeats would narrow intervals."""
    by_seed: dict[int, list[Member]] = {}
    for member in members:
        by_seed.setdefault(member.seed, []).append(member)
    for seed, same in by_seed.items():
        best = max(same, key=lambda member: int(member.metrics[metric][0][-1]))
        if len(same) > 1:
            alike = f"{len(same)} runs have the same settings and seed {seed}"
            warnings.warn(f"{alike}; only {best.run} counts", stacklevel=3)
        yield best


def _labelled(env: str, groups: Sequence[list[Member]]) -> Iterator[Group]:
    """The groups of one environment, with labels that say what differs between them."""
    here = [members for members in groups if members[0].settings["env.id"] == env]
    agents = [members[0].settings["algorithm"] for members in here]
    taken: set[str] = set()
    for members, agent in zip(here, agents, strict=True):
        # Settings of different agents differ anyway, and say no more than the agent's name does.
        peers = [m[0].settings for m, other in zip(here, agents, strict=True) if other == agent]
        paths = dict.fromkeys(path for settings in peers for path in settings)
        differing = [p for p in paths if any(_get(s, p) != _get(peers[0], p) for s in peers)]
        own = {path: _get(members[0].settings, path) for path in differing}
        words = [f"{_short(path, differing)} {_text(value)}" for path, value in own.items()]
        named = [agent] if len(set(agents)) > 1 or not words else []
        label = ", ".join(named + _some(words))
        label = f"{label} ({members[0].run.resolve().name})" if label in taken else label
        taken.add(label)
        yield Group(env, agent, label, own, members)


def _some(words: list[str]) -> list[str]:
    rest = len(words) - MAX_SHOWN
    return words if rest <= 0 else [*words[:MAX_SHOWN], f"and {rest} more"]


def _get(settings: Mapping[str, Any], path: str) -> Any:
    return settings.get(path, ABSENT)


def _short(path: str, paths: Sequence[str]) -> str:
    """The last part of a path, if it is clear among `paths`."""
    last = path.rpartition(".")[2]
    clear = sum(other.rpartition(".")[2] == last for other in paths) == 1
    return last if clear else path


def _text(value: Any) -> str:
    """A value as a flag takes it."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    if isinstance(value, list):
        return ",".join(map(_text, value))
    return str(value)
