"""What the command line can do: one function and its options for each command."""

from __future__ import annotations

import gc
import json
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from operant.config import load_yaml, parse_flags
from operant.core.config import Config, Count, CountOrZero
from operant.core.errors import EnvironmentFault, UsageError

if TYPE_CHECKING:
    from operant.core.protocols import Agent
    from operant.recipes import Recipe
    from operant.session.run_settings import RunConfig
    from operant.session.session import Session


@dataclass(frozen=True, kw_only=True)
class TrainOptions(Config):
    """Besides the settings of the run itself."""

    config: str | None = None  # a YAML file of settings; flags overrule it
    recipe: str = "auto"  # tuned settings to start from: a name, auto: the one that fits, or none
    dry_run: bool = False  # print settings, network and memory needed, and stop
    runs: str = "runs"  # where run directories are made
    name: str = ""  # of the run directory; by default agent, environment and seed
    video: Literal["none", "gif", "mp4"] = "none"  # film the policy when training is over
    profile: bool = False  # tell and draw where the time went
    quiet: bool = False  # show no progress


@dataclass(frozen=True, kw_only=True)
class ResumeOptions(Config):
    """How to go on."""

    runs: str = "runs"  # where to look for runs
    profile: bool = False  # tell and draw where the time went
    quiet: bool = False  # show no progress


@dataclass(frozen=True, kw_only=True)
class EvalOptions(Config):
    """How to evaluate."""

    episodes: Count = 20  # whole episodes to play
    seed: CountOrZero = 1_000  # of the environments
    json: bool = False  # print one JSON object
    runs: str = "runs"  # where to look for runs


@dataclass(frozen=True, kw_only=True)
class PlayOptions(Config):
    """How to watch."""

    record: str | None = None  # write a .gif or .mp4 instead of opening a window
    episodes: Count = 1  # whole episodes to play
    runs: str = "runs"  # where to look for runs


@dataclass(frozen=True, kw_only=True)
class PlotOptions(Config):
    """How to draw."""

    out: str = ""  # the PNG to write; by default learning-curve.png in the run, or here if several
    metric: str = "rollout/ep_rew_mean"  # what to draw
    runs: str = "runs"  # where to look for runs


def train(argv: list[str]) -> int:
    """Train an agent from its first step."""
    from operant.report.play import drawable  # noqa: PLC0415  # torch is slow to import
    from operant.session.session import Session  # noqa: PLC0415
    from operant.session.try_out import preview  # noqa: PLC0415

    options, config, recipe = composed(argv)
    if options.dry_run:
        print(preview(config))
        return 0
    if options.video != "none":
        drawable(config.env).close()  # better now than after hours of training
    session = Session.create(config, Path(options.runs), ["operant", "train", *argv], options.name)
    if recipe and not options.quiet:
        print(f"recipe {recipe.name}: {recipe.about}")
    try:
        return _run(session, options, options.video)
    except UsageError:
        session.discard()
        raise


def composed(argv: list[str]) -> tuple[TrainOptions, RunConfig, Recipe | None]:
    """What a command line of `train` asks for."""
    from operant.session.compose import compose  # noqa: PLC0415

    options, words = parse_flags(TrainOptions, argv, partial=True)
    tree = load_yaml(Path(options.config)) if options.config else {}
    agent = words.pop(0) if words and not words[0].startswith("--") else ""
    others = [field.name for field in fields(TrainOptions)]
    return options, *compose(agent, tree, words, options.recipe, options.config or "", others)


def resume(argv: list[str]) -> int:
    """Go on with a run from its last checkpoint."""
    from operant.session.run_directory import DONE, find_run  # noqa: PLC0415
    from operant.session.session import Session  # noqa: PLC0415

    options, words = parse_flags(ResumeOptions, argv)
    run = find_run(_at_most_one(words), Path(options.runs), unfinished_only=True)
    if (run / DONE).exists():
        print(f"{run} is finished; nothing is left to do")
        return 0
    return _run(Session.open(run), options)


def evaluate(argv: list[str]) -> int:
    """Play whole episodes without exploring, and report the return."""
    from operant.session.build import evaluation  # noqa: PLC0415
    from operant.session.runner import summary  # noqa: PLC0415

    options, words = parse_flags(EvalOptions, argv)
    config, agent = _agent(words, options.runs)
    found = summary(evaluation(config, options.episodes, options.seed).run(agent))
    result = {
        "mean_reward": found["eval/mean_reward"],
        "std_reward": found["eval/std_reward"],
        "episodes": options.episodes,
        "mean_length": found["eval/mean_ep_length"],
    }
    if options.json:
        print(json.dumps(result))
    else:
        mean, std = result["mean_reward"], result["std_reward"]
        print(f"{config.env.id}: {mean:.1f} ± {std:.1f} over {options.episodes} episodes")
    return 0


def play(argv: list[str]) -> int:
    """Watch a trained agent, on screen or in a file."""
    from operant.report.play import check_screen, record, show  # noqa: PLC0415

    options, words = parse_flags(PlayOptions, argv)
    if options.record is None:
        check_screen()
    config, agent = _agent(words, options.runs)
    if options.record is None:
        played = show(config, agent, options.episodes)
    else:
        played = record(config, agent, Path(options.record), options.episodes)
        print(options.record)
    for info in played:
        print(f"return {info.reward:.1f} in {info.length} steps")
    return 0


def plot(argv: list[str]) -> int:
    """Draw learning curves."""
    from operant.report.plot import plot_runs  # noqa: PLC0415
    from operant.session.run_directory import find_run  # noqa: PLC0415

    options, words = parse_flags(PlotOptions, argv)
    names: list[str | None] = [*words] or [None]
    runs = [find_run(name, Path(options.runs)) for name in names]
    out = Path(options.out) if options.out else Path("learning-curve.png")
    if not options.out and len(runs) == 1:
        out = runs[0] / out
    plot_runs(runs, out, options.metric)
    print(out)
    return 0


def list_(argv: list[str]) -> int:
    """Agents, recipes and environments; a word narrows the environments to those that match."""
    from fnmatch import fnmatch  # noqa: PLC0415

    from operant.agents.registry import AGENTS  # noqa: PLC0415
    from operant.envs.providers.catalog import known_ids  # noqa: PLC0415
    from operant.recipes import RECIPES  # noqa: PLC0415

    _, words = parse_flags(Config, argv)
    pattern = (_at_most_one(words) or "").lower()
    found = [i for i in known_ids() if fnmatch(i.lower(), f"*{pattern.strip('*')}*")]
    if not found:
        raise UsageError(f"no environment matches {pattern!r}; `operant list` shows them all")
    print("agents")
    for name, (cls, _) in sorted(AGENTS.items()):
        about = (sys.modules[cls.__module__].__doc__ or "").splitlines()[0]
        print(f"  {name:14} {about}")
    print("recipes")
    for recipe in RECIPES:
        print(f"  {recipe.name:19} {recipe.pattern:12} {recipe.about}")
    print("environments", *found, sep="\n  ")
    return 0


def _run(session: Session, options: TrainOptions | ResumeOptions, video: str = "none") -> int:
    """Train a session's run to its end, and show what came of it."""
    from operant.report.play import record  # noqa: PLC0415
    from operant.report.plot import plot_runs  # noqa: PLC0415
    from operant.session.runner import Runner  # noqa: PLC0415
    from operant.session.session import ERROR  # noqa: PLC0415

    run = session.run
    with session:
        if not options.quiet:
            print("\n".join([f"run {run}", *([session.why] if session.why else [])]), flush=True)
        runner = Runner(session, options.quiet)
        gc.freeze()  # what is there by now stays, and need not be looked through
        gc.enable()
        try:
            runner.train()
        except EnvironmentFault as error:
            raise EnvironmentFault(f"{error} (traceback: {run / ERROR})") from error
        finally:
            runner.close()
        if options.profile:
            _profile(run)
        if runner.stopped is not None:
            print(f"stopped at step {runner.step:,}; go on with: operant resume {run}")
            return 128 + runner.stopped
        # A run so short that no episode ended in it was still evaluated.
        key = "rollout/ep_rew_mean" if runner.window else "eval/mean_reward"
        plot_runs([run], run / "learning-curve.png", key)
        if video != "none":
            film = run / "videos" / f"policy.{video}"
            record(session.config, runner.container.agent, film)
    mean, episodes = runner.tested["eval/mean_reward"], session.config.eval.episodes
    print(f"{runner.step:,} steps: mean return {mean:.1f} over {episodes} evaluation episodes")
    print(f"everything is in {run}" + (f", the policy in {film}" if video != "none" else ""))
    print("try next:")
    print(f"  operant eval {run} --episodes 100")
    print(f"  operant play {run} --record {run}/videos/play.mp4")
    print(f"  tensorboard --logdir {run}")
    return 0


def _profile(run: Path) -> None:
    from operant.report.profile import draw, profile, table  # noqa: PLC0415

    found = profile(run)
    draw(found, run / "profile.png")
    print(f"{table(found)}\nprofile in {run / 'profile.png'}")


def _agent(words: list[str], runs: str) -> tuple[RunConfig, Agent]:
    from operant.session.run_directory import find_run  # noqa: PLC0415
    from operant.session.session import load_agent  # noqa: PLC0415

    return load_agent(find_run(_at_most_one(words), Path(runs)))


def _at_most_one(words: list[str]) -> str | None:
    if len(words) > 1:
        raise UsageError(f"{words[1]!r}: expected one name at most, and {words[0]!r} is one")
    return words[0] if words else None
