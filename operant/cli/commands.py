"""The commands of the command line, one function each; torch is imported only where needed."""

from __future__ import annotations

import gc
import json
from contextlib import nullcontext
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from operant.cli.options import (
    EvalOptions,
    PlayOptions,
    PlotOptions,
    ResumeOptions,
    TrainOptions,
    joined_callbacks,
)
from operant.config import parse_flags
from operant.core.config import Config
from operant.core.errors import EnvironmentFault, UsageError
from operant.session.output import output_to_stderr
from operant.session.run_directory import DONE, find_run, shown

if TYPE_CHECKING:
    from operant.core.protocols import Agent
    from operant.session.recipe import Recipe
    from operant.session.run_settings import RunConfig
    from operant.session.runner import Runner
    from operant.session.session import Session


def train(argv: list[str]) -> int:
    """Train an agent. Every setting of the run is a flag."""
    from operant.report.play import make_rendered_env  # noqa: PLC0415
    from operant.run import create_session  # noqa: PLC0415
    from operant.session.try_out import preview  # noqa: PLC0415

    options, config, recipe = composed(argv)
    if options.dry_run:
        print(preview(config))
        return 0
    if options.video != "none":
        make_rendered_env(config.env).close()  # fails now rather than after hours of training
    root, command = Path(options.runs), ["operant", "train", *argv]
    origin = None if options.from_ is None else find_run(options.from_, root)
    session = create_session(config, root, command, options.name, origin)
    if recipe and not options.quiet:
        print(recipe)
    try:
        return _run(session, options, options.video)
    except UsageError:
        session.discard()
        raise


def composed(argv: list[str]) -> tuple[TrainOptions, RunConfig, Recipe | None]:
    """The options and the configuration of a `train` command, and the recipe it starts from."""
    from operant.recipes import RECIPES  # noqa: PLC0415
    from operant.session.compose import compose  # noqa: PLC0415
    from operant.session.run_settings import with_network  # noqa: PLC0415
    from operant.session.trust import read_tree  # noqa: PLC0415

    options, words = parse_flags(TrainOptions, joined_callbacks(argv), partial=True)
    tree = read_tree(Path(options.config), options.trust) if options.config else {}
    if options.network is not None:
        tree = with_network(tree, options.network)
    agent = words.pop(0) if words and not words[0].startswith("--") else ""
    others = [field.name for field in fields(TrainOptions)]
    source = options.config or ""
    return options, *compose(agent, tree, words, options.recipe, RECIPES, source, others)


def resume(argv: list[str]) -> int:
    """Continue training from the last checkpoint of a run; with --steps, train it for longer."""
    from operant.session.session import Session  # noqa: PLC0415

    options, words = parse_flags(ResumeOptions, argv)
    unfinished_only = options.steps is None
    run = find_run(_at_most_one(words), Path(options.runs), unfinished_only)
    if unfinished_only and (run / DONE).exists():
        print(f"{shown(run)} is finished; there is nothing to resume")
        return 0
    session = Session.open(run, options.trust, options.force, options.steps)
    if options.without_callbacks:
        session.config = replace(session.config, callbacks=())
    return _run(session, options)


def evaluate(argv: list[str]) -> int:
    """Evaluate a trained agent: the mean return of whole episodes without exploration."""
    from operant.report.progress import in_short  # noqa: PLC0415
    from operant.run import evaluate as evaluated  # noqa: PLC0415

    options, words = parse_flags(EvalOptions, argv)
    with output_to_stderr() if options.json else nullcontext():
        config, agent = _agent(words, options)
        found = evaluated(config, agent, options.episodes, options.seed)
    if options.json:
        print(json.dumps(found))
    else:
        mean, std = (in_short(found[f"eval/{name}_reward"]) for name in ("mean", "std"))
        print(f"{config.env.id}: {mean} ± {std} over {options.episodes} episodes")
    return 0


def play(argv: list[str]) -> int:
    """Watch a trained agent in a window, or record a video."""
    from operant.report.play import check_display, record, show  # noqa: PLC0415
    from operant.report.progress import in_short  # noqa: PLC0415

    options, words = parse_flags(PlayOptions, argv)
    if options.record is None:
        check_display()
    config, agent = _agent(words, options)
    if options.record is None:
        played = show(config, agent, options.episodes)
    else:
        played = record(config, agent, Path(options.record), options.episodes)
        print(options.record)
    for info in played:
        print(f"return {in_short(info.reward)} in {info.length} steps")
    return 0


def plot(argv: list[str]) -> int:
    """Plot learning curves; of runs that differ only in the seed, their interquartile mean."""
    from operant.report.groups import find_runs  # noqa: PLC0415
    from operant.report.plot import plot_runs  # noqa: PLC0415

    options, words = parse_flags(PlotOptions, argv)
    root = Path(options.runs)
    runs = find_runs(words, root) if words else [find_run(None, root)]
    out = Path(options.out or "learning-curve.png")
    if not options.out and len(words) < 2:
        out = (runs[0] if len(runs) == 1 else runs[0].parent) / out
    plot_runs(runs, out, options.metric)
    print(out)
    return 0


def list_(argv: list[str]) -> int:
    """List the agents, recipes and environments that can be made here; PATTERN selects some."""
    from operant.cli.listing import listing  # noqa: PLC0415

    _, words = parse_flags(Config, argv)
    print(listing(_at_most_one(words) or ""))
    return 0


def _run(session: Session, options: TrainOptions | ResumeOptions, video: str = "none") -> int:
    """Train the run of a session to its end, and report the result."""
    from operant.session.runner import Runner  # noqa: PLC0415

    run, why = session.run, session.trial.why
    with session:
        if not options.quiet:
            print("\n".join(filter(None, (f"run {shown(run)}", why))), flush=True)
        runner = Runner(session)
        gc.freeze()  # what exists by now stays until the end
        gc.enable()
        _train(runner, options.quiet)
        if options.profile:
            _profile(run)
        if runner.stopped is not None:
            print(f"stopped at step {runner.step:,}; continue with: operant resume {shown(run)}")
            return 128 + runner.stopped
        recorded = _draw(runner, video)
    _conclude(runner, recorded)
    return 0


def _conclude(runner: Runner, recorded: str) -> None:
    """Print the result, and what can be done with the run."""
    from operant.report.play import renders  # noqa: PLC0415
    from operant.report.progress import in_short  # noqa: PLC0415

    run, episodes = shown(runner.session.run), runner.config.eval.episodes
    mean = runner.tested.get("eval/mean_reward")
    if mean is None:
        print(f"{runner.step:,} steps")
    else:
        reached = f"mean return {in_short(mean)} over {episodes} evaluation episodes"
        print(f"{runner.step:,} steps: {reached}")
    print(f"everything is in {run}{recorded}")
    print("try next:")
    print(f"  operant eval {run} --episodes 100")
    if renders(runner.config.env):
        print(f"  operant play {run} --record {run}/videos/play.mp4")
    print(f"  tensorboard --logdir {run}")


def _train(runner: Runner, quiet: bool) -> None:
    from operant.report.progress import progress_of  # noqa: PLC0415
    from operant.session.session import ERROR  # noqa: PLC0415

    try:
        runner.train(progress_of(runner, quiet))
    except EnvironmentFault as error:
        where = runner.session.run / ERROR
        raise EnvironmentFault(f"{error} (traceback: {shown(where)})") from error
    finally:
        runner.close()


def _draw(runner: Runner, video: str) -> str:
    """Plot the learning curve, and record a video if asked for; where the video is, in words."""
    from operant.report.play import record  # noqa: PLC0415
    from operant.report.plot import plot_runs  # noqa: PLC0415

    run = runner.session.run
    # A run so short that no episode ended in it was still evaluated.
    key = "rollout/ep_rew_mean" if runner.window else "eval/mean_reward"
    if runner.window or runner.tested:
        plot_runs([run], run / "learning-curve.png", key)
    if video == "none":
        return ""
    path = run / "videos" / f"policy.{video}"
    record(runner.config, runner.container.agent, path)
    return f", the video in {shown(path)}"


def _profile(run: Path) -> None:
    from operant.report.profile import plot_profile, profile, table  # noqa: PLC0415

    measured = profile(run)
    plot_profile(measured, run / "profile.png")
    print(f"{table(measured)}\nprofile in {shown(run / 'profile.png')}")


def _agent(words: list[str], options: EvalOptions | PlayOptions) -> tuple[RunConfig, Agent]:
    from operant.session.load_run import load_agent  # noqa: PLC0415

    return load_agent(
        find_run(_at_most_one(words), Path(options.runs)), options.trust, options.best
    )


def _at_most_one(words: list[str]) -> str | None:
    if len(words) > 1:
        raise UsageError(f"{words[1]!r}: expected one name at most, and {words[0]!r} is one")
    return words[0] if words else None
