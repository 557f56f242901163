"""`operant sweep`: combinations of settings, with several seeds each, trained and compared."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from operant.cli.options import SweepOptions
from operant.config import parse_flags
from operant.core.errors import UsageError
from operant.core.schedule import Schedule

if TYPE_CHECKING:
    from operant.cli.sweep_plan import Plan
    from operant.cli.sweep_processes import SweepProcesses
    from operant.report.comparison import Comparison

RETURN = "rollout/ep_rew_mean"
PICTURE = "learning-curve.png"


def sweep_command(argv: list[str]) -> int:
    """Train every combination of settings with several seeds, and compare; takes train's flags."""
    plan, options = _planned(argv)
    if options.dry_run:
        for run in plan.runs:
            print(f"{run.name}: operant train {shlex.join(run.argv)}")
        print(f"{len(plan.runs)} runs in {plan.directory}")
        return 0
    found = _run(plan, options)
    if found.stopped is not None:
        finished = f"{found.ended} of {found.total} runs are finished"
        print(f"stopped; {finished}; continue with: operant sweep --resume {plan.directory}")
        return 128 + found.stopped
    print(_summed_up(plan))
    print(f"everything is in {plan.directory}")
    for name, why in found.failed.items():
        print(f"failed: {name}: {why} (all it said: {found.log(name)})")
    return 1 if found.failed else 0


def sweep(
    algorithm: str,
    env_id: str | None = None,
    *,
    grid: Mapping[str, Iterable[Any]] | None = None,
    seeds: int = 3,
    jobs: int = 0,
    name: str = "",
    runs: str | Path = "runs",
    quiet: bool = False,
    **settings: Any,
) -> Comparison:
    """Train every combination of settings with every seed as `operant sweep` does, and compare.

    `sweep("ppo", "CartPole-v1", seeds=5, grid={"agent.lr": [1e-3, 3e-4]}, steps=50_000)`

    Each run is a process of its own. Settings are those of `train`, and `recipe`. What is printed
    of the result is a table; its `rows` hold the figures. Called again, it goes on with runs that
    are not finished, and only reads those that are.
    """
    from operant.cli.sweep_plan import make_plan  # noqa: PLC0415

    if not isinstance(env_id, str | None):
        raise UsageError(f"env_id = {env_id!r}: expected a name, as runs are other processes")
    options = SweepOptions(seeds=seeds, jobs=jobs, name=name, runs=str(runs), quiet=quiet)
    named = {} if env_id is None else {"env": {"id": env_id}}
    words = [algorithm, *settings_as_flags(named), *settings_as_flags(settings)]
    texts = {path: _texts(path, values) for path, values in (grid or {}).items()}
    plan = make_plan(options, words, texts, ["operant.sweep", *words])
    found = _run(plan, options)
    if found.stopped is not None:  # as the signal would have without us, so that loops end
        raise KeyboardInterrupt(found.stopped)
    if found.failed:
        name, why = next(iter(found.failed.items()))
        others = f"{len(found.failed)} of {found.total} runs failed, the first of them {name}"
        raise RuntimeError(f"{others}: {why} (all it said: {found.log(name)})")
    return _summed_up(plan)


def _planned(argv: list[str]) -> tuple[Plan, SweepOptions]:
    """The sweep that a command asks for, new or in a directory."""
    from operant.cli.sweep_plan import FILE, make_plan, parse_grid, read_plan  # noqa: PLC0415

    rest, texts = _without_grid(argv)
    options, words = parse_flags(SweepOptions, rest, partial=True)
    if options.resume is None:
        command = ["operant", "sweep", *argv]
        return make_plan(options, words, parse_grid(texts), command), options
    trust = "--trust" in words
    words = [word for word in words if word != "--trust"]
    if words or texts:
        raise UsageError(f"{[*words, *texts][0]!r}: a sweep that is resumed has its settings")
    directory = Path(options.resume)
    under = Path(options.runs) / directory
    found = under if (under / FILE).exists() and not (directory / FILE).exists() else directory
    return read_plan(found, trust), options


def _without_grid(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """The other words, and those after every `--grid`, which is the one flag that may be given
    several times."""
    rest: list[str] = []
    texts: list[str] = []
    queue = list(argv)
    while queue:
        word = queue.pop(0)
        if word.startswith("--grid="):
            texts.append(word.removeprefix("--grid="))
        elif word == "--grid":
            before = len(texts)
            while queue and not queue[0].startswith("--"):
                texts.append(queue.pop(0))
            if len(texts) == before:
                raise UsageError("--grid: a value is missing; expected setting=value,value")
        else:
            rest.append(word)
    return rest, texts


def _run(plan: Plan, options: SweepOptions) -> SweepProcesses:
    """Run what is missing of a sweep."""
    from operant.cli.sweep_plan import write_plan  # noqa: PLC0415
    from operant.cli.sweep_processes import SweepProcesses  # noqa: PLC0415
    from operant.envs.managers.choose import cores  # noqa: PLC0415
    from operant.session.run_directory import lock  # noqa: PLC0415

    if options.resume is None:
        write_plan(plan)
    with lock(plan.directory):
        jobs = options.jobs or cores()
        found = SweepProcesses(plan.directory, plan.runs, jobs, options.quiet)
        if not options.quiet:
            print(f"{found.total} runs, {jobs} at a time, in {plan.directory}", flush=True)
        found.run()
    return found


def _summed_up(plan: Plan) -> Comparison:
    """The comparison of what was run, and the picture of its curves."""
    from operant.report.comparison import Comparison, compare_runs  # noqa: PLC0415
    from operant.report.groups import EVALUATION  # noqa: PLC0415
    from operant.report.plot import plot_runs  # noqa: PLC0415
    from operant.session.log import METRICS, read_metrics  # noqa: PLC0415

    runs = [plan.directory / run.name for run in plan.runs]
    runs = [run for run in runs if (run / METRICS).exists()]
    logged = {name for run in runs for name in read_metrics(run)}
    # Without evaluation the returns of training are all there is, and the other way round in runs
    # so short that no episode ended.
    curves = [name for name in (RETURN, EVALUATION) if name in logged]
    if not curves:
        return Comparison(EVALUATION, [])
    plot_runs(runs, plan.directory / PICTURE, curves[0])
    return compare_runs(runs, EVALUATION if EVALUATION in logged else RETURN)


def settings_as_flags(tree: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Settings as nested in a file, as words of the command line."""
    for key, value in tree.items():
        here = f"{path}{key}"
        if here == "env.kwargs":
            pairs = [f"{name}={json.dumps(given)}" for name, given in value.items()]
            yield from ["--env.kwargs", *pairs] if pairs else []
        elif isinstance(value, Mapping):
            yield from settings_as_flags(value, f"{here}.")
        else:
            yield f"--{here}={_text(value)}"


def _texts(path: str, values: Any) -> list[str]:
    """The values of a setting in a grid, as flags take them."""
    several = isinstance(values, Iterable) and not isinstance(values, str)
    found = [_text(value) for value in values] if several else []
    if not found:
        raise UsageError(f"grid[{path!r}] = {values!r}: expected a list of values")
    return found


def _text(value: Any) -> str:
    """A value as a flag takes it."""
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_text, value))}]"
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return str(value.start if isinstance(value, Schedule) and value.end is None else value)
