"""Which runs a sweep consists of: every combination of its grid with every seed, checked."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from operant import __version__
from operant.cli.commands import composed
from operant.cli.options import SweepOptions, TrainOptions
from operant.config.flags import flag
from operant.core.conversion import quoted
from operant.core.durable import Durable
from operant.core.errors import UsageError
from operant.run import NAME, NAMES
from operant.session.run_settings import RunConfig, as_file
from operant.session.trust import SIGNATURE, code_named, sign, signed
from operant.session.try_out import try_out

FILE = "sweep.json"  # in the directory of a sweep: the command, and its runs
COMMA = re.compile(r",(?![^(\[]*[)\]])")  # not inside of linear(1e-3, 0) or [64, 64]
NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9.-]+")
MAX_NAME = 120  # characters; file systems allow 255
# Options of `train` that say where a run goes and what it shows, rather than what it is.
NO_SETTINGS = {field.name for field in fields(TrainOptions)} - {"recipe"}

Grid = Mapping[str, Sequence[str]]  # texts of the values, by dotted path
Combination = tuple[tuple[str, str], ...]  # a value for each setting of a grid


class Planned(NamedTuple):
    """One run of a sweep: the name of its directory, and its arguments to `operant train`."""

    name: str
    argv: list[str]


class Plan(NamedTuple):
    """A sweep: its directory, the command that asked for it, and its runs."""

    directory: Path
    command: list[str]
    runs: list[Planned]


def parse_grid(texts: Sequence[str]) -> dict[str, list[str]]:
    """The grid of words such as `agent.lr=1e-3,3e-4`."""
    grid: dict[str, list[str]] = {}
    for text in texts:
        name, _, values = text.partition("=")
        path = name.replace("-", "_")
        found = [value.strip() for value in COMMA.split(values)]
        if not name or not all(found):
            raise UsageError(f"--grid {text}: expected setting=value,value")
        if path in grid:
            raise UsageError(f"--grid {text}: {name} has values already; give them at once")
        grid[path] = found
    return grid


def make_plan(
    options: SweepOptions, words: Sequence[str], grid: Grid, command: Sequence[str]
) -> Plan:
    """The runs that `train` with `words` would be, for every combination and seed.

    Every combination is tried out, so that what cannot work is refused before anything starts.
    """
    _check_paths(grid)
    tried = list(_combinations(_absolute(words), grid))
    runs: list[Planned] = []
    for i in range(options.seeds):  # seed by seed, so that a part of a sweep says most
        for combination, argv, config in tried:
            seed = config.seed + i
            name = _unique(_name(config, combination, seed), runs)
            runs.append(Planned(name, [*argv, f"--seed={seed}"]))
    config = tried[0][2]
    directory = Path(options.runs) / _sweep_name(options.name, config, list(grid))
    return Plan(directory, list(command), runs)


def _check_paths(grid: Grid) -> None:
    for path in grid:
        if path == "seed":
            raise UsageError("--grid seed: --seeds 5 makes five runs, with seeds from --seed on")
        if path in NO_SETTINGS:
            raise UsageError(f"--grid {path}: is no setting of a run")


def _combinations(
    words: list[str], grid: Grid
) -> Iterator[tuple[Combination, list[str], RunConfig]]:
    """Every combination of the grid, with the arguments and the configuration of its runs."""
    agent = [words.pop(0)] if words and not words[0].startswith("--") else []
    seen: dict[str, Combination] = {}
    for combination in product(*([(path, value) for value in grid[path]] for path in grid)):
        flags = [f"{flag(path)}={value}" for path, value in combination]
        # One thread each, as they run side by side, unless the command says otherwise.
        argv = [*agent, "--threads=1", *words, *flags]
        _, config, _ = composed(argv)
        same = seen.setdefault(repr(as_file(config)), combination)
        if same is not combination:
            raise UsageError(f"--grid: {_text(same)} and {_text(combination)} are the same")
        _try(config, combination)
        yield combination, argv, config


def _try(config: RunConfig, combination: Combination) -> None:
    """Make its environment and agent, without measuring which sampler is the fastest."""
    try:
        try_out(replace(config, sampler="serial", compile="off", threads=1))
    except UsageError as error:
        where = f"{_text(combination)}: " if combination else ""
        raise UsageError(f"{where}{error}") from None


def _absolute(words: Sequence[str]) -> list[str]:
    """The words, with the path of a configuration file that is right from anywhere."""
    found = list(words)
    for i, word in enumerate(found):
        if word.startswith("--config="):
            found[i] = f"--config={Path(word.partition('=')[2]).absolute()}"
        elif i and found[i - 1] == "--config":
            found[i] = str(Path(word).absolute())
    return found


def _text(combination: Combination) -> str:
    return " ".join(f"{path}={value}" for path, value in combination)


def _last(path: str) -> str:
    return path.rpartition(".")[2]


def _plain(text: str) -> str:
    """The text with only what may be in the name of a run."""
    return NOT_IN_NAMES.sub("_", text).strip("_")


def _name(config: RunConfig, combination: Combination, seed: int) -> str:
    values = "-".join(_plain(f"{_last(path)}_{value}") for path, value in combination)
    return f"{(values or config.algorithm)[:MAX_NAME]}-s{seed}"


def _unique(name: str, runs: Sequence[Planned]) -> str:
    taken = {run.name for run in runs}
    count = 1
    while (found := name if count == 1 else f"{name}-{count}") in taken:
        count += 1
    return found


def _sweep_name(given: str, config: RunConfig, paths: Sequence[str]) -> str:
    if given and not NAME.fullmatch(given):
        raise UsageError(f"name = {quoted(given)}: expected {NAMES}")
    env = [] if "env.id" in paths else [config.env.id.replace("/", "-")]
    return (
        given or _plain("-".join(["sweep", config.algorithm, *env, *map(_last, paths)]))[:MAX_NAME]
    )


def read_plan(directory: Path, trust: bool = False) -> Plan:
    """The sweep in a directory; `trust`: with code that the commands of somebody else name."""
    path = directory / FILE
    try:
        found: Any = json.loads(path.read_text("utf-8"))
        runs = [Planned(str(run["name"]), [str(x) for x in run["argv"]]) for run in found["runs"]]
    except OSError:
        raise UsageError(f"{directory}: holds no {FILE}; expected a sweep's directory") from None
    except (ValueError, TypeError, KeyError):
        raise UsageError(f"{path}: is not the file of a sweep; make it anew by --name") from None
    if any(not NAME.fullmatch(run.name) for run in runs):
        raise UsageError(f"{path}: has a run whose name is no plain word")
    code = _code(runs)
    if code and not trust and _digest(runs) not in signed(directory):
        raise UsageError(
            f"{path}: would import {', '.join(code)}, and was not made by you on this machine; "
            f"read that code first, then allow it by --trust"
        )
    command = found.get("command", [])
    return Plan(directory, [*map(str, command if isinstance(command, list) else [])], runs)


def _code(runs: Sequence[Planned]) -> list[str]:
    """The code that the commands of runs name; what they trust may be any."""
    words = [word for run in runs for word in run.argv]
    values = [word.partition("=")[2] if word.startswith("--") else word for word in words]
    trusted = ["what --trust allows"] if any(word.startswith("--trust") for word in words) else []
    return [*code_named(values), *trusted]


def _digest(runs: Sequence[Planned]) -> str:
    """What is signed of a sweep whose commands name code: all of them."""
    text = json.dumps([run._asdict() for run in runs]).encode()
    return f"sweep:{hashlib.sha256(text).hexdigest()}"


def write_plan(plan: Plan) -> None:
    """Make the directory of a sweep, or add runs to the sweep that is in it."""
    before: list[Planned] = []
    if plan.directory.exists():
        if not (plan.directory / FILE).exists():
            raise UsageError(f"{plan.directory}: exists and is no sweep; choose another --name")
        before = read_plan(plan.directory).runs
    known = {run.name: run for run in before}
    for run in plan.runs:
        if known.get(run.name, run) != run:
            raise UsageError(
                f"{plan.directory}: holds a sweep with other settings; choose another --name, or "
                f"go on with that one by `operant sweep --resume {plan.directory}`"
            )
    runs = [*before, *(run for run in plan.runs if run.name not in known)]
    content = {
        "command": plan.command,
        "written": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "operant": __version__,
        "runs": [run._asdict() for run in runs],
    }
    plan.directory.mkdir(parents=True, exist_ok=True)
    if _code(runs) and (signature := sign({"runs": _digest(runs)})):
        _write(plan.directory / SIGNATURE, signature)
    _write(plan.directory / FILE, content)


def _write(path: Path, content: Any) -> None:
    files, partial = Durable(), path.with_name(f".{path.name}")
    partial.unlink(missing_ok=True)
    files.write(partial, [json.dumps(content, indent=1).encode()])
    files.rename(partial, path)
