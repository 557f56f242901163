"""The options of each command, besides the settings of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from operant.core.config import Config, Count, CountOrZero, FilePath, Range
from operant.core.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class TrainOptions(Config):
    """What to start from, where to write, and what to show."""

    config: FilePath | None = None  # YAML file with settings; flags override it
    trust: bool = False  # import code that the file names
    recipe: str = "auto"  # tuned settings to start from: a name, none, or auto: the one that fits
    from_: FilePath | None = None  # run whose weights to start from
    network: str | None = None  # network of your own: module:Name of what makes an nn.Module
    dry_run: bool = False  # print the settings, the network and the memory needed, and stop
    runs: FilePath = "runs"  # directory for run directories
    name: str = ""  # of the run directory; default: agent, environment, seed and time
    video: Literal["none", "gif", "mp4"] = "none"  # record an episode of the trained agent
    profile: bool = False  # print and plot where the time went
    quiet: bool = False  # show no progress


@dataclass(frozen=True, kw_only=True)
class ResumeOptions(Config):
    """How long to train, where runs are, and what to show."""

    steps: Count | None = None  # new total of environment steps, of a finished run too
    force: bool = False  # go on though settings were changed that make it another run
    trust: bool = False  # import code that somebody else's run names
    without_callbacks: bool = False  # go on without the callbacks of the run
    runs: FilePath = "runs"  # directory of run directories
    profile: bool = False  # print and plot where the time went
    quiet: bool = False  # show no progress


@dataclass(frozen=True, kw_only=True)
class EvalOptions(Config):
    """How to evaluate, and where runs are."""

    episodes: Count = 20  # number of evaluation episodes
    seed: CountOrZero = 1_000  # random seed of the environments
    best: bool = False  # take the weights with the best evaluation, not the last ones
    json: bool = False  # print the result as one JSON object
    trust: bool = False  # import code that somebody else's run names
    runs: FilePath = "runs"  # directory of run directories


@dataclass(frozen=True, kw_only=True)
class PlayOptions(Config):
    """What to play, and where runs are."""

    record: FilePath | None = None  # write a .gif or .mp4 file instead of opening a window
    episodes: Count = 1  # number of episodes
    trust: bool = False  # import code that somebody else's run names
    best: bool = False  # take the weights with the best evaluation, not the last ones
    runs: FilePath = "runs"  # directory of run directories


@dataclass(frozen=True, kw_only=True)
class PlotOptions(Config):
    """What to plot, and where runs are."""

    out: str = ""  # PNG file; default: learning-curve.png, in the directory if one is named
    metric: str = "rollout/ep_rew_mean"  # metric to plot, by its name in the log
    runs: FilePath = "runs"  # directory of run directories


@dataclass(frozen=True, kw_only=True)
class CompareOptions(Config):
    """What to compare, and where runs are."""

    metric: str = "eval/mean_reward"  # metric whose last value counts, by its name in the log
    json: bool = False  # print a list of JSON objects, one for each group
    runs: FilePath = "runs"  # directory of run directories


@dataclass(frozen=True, kw_only=True)
class SweepOptions(Config):
    """Which runs to make of one command, where, and how many at a time."""

    grid: tuple[str, ...] = ()  # setting=value,value; of several --grid, every combination
    seeds: Annotated[int, Range(1, 10_000)] = (
        3  # runs of each combination, with seeds from --seed on
    )
    jobs: CountOrZero = 0  # runs at a time; 0: one for each CPU core
    resume: FilePath | None = None  # go on with the sweep in this directory
    runs: FilePath = "runs"  # directory in which the directory of the sweep is made
    name: str = ""  # of the sweep's directory; default: agent, environment and settings
    dry_run: bool = False  # print the runs, and stop
    quiet: bool = False  # print no line for each finished run


@dataclass(frozen=True, kw_only=True)
class CheckOptions(Config):
    """How long to check an environment, and how to tell the result."""

    steps: Count = 200  # random steps to take; fewer for a slow environment
    kwargs: dict[str, Any] = field(default_factory=dict)  # keyword arguments of the environment
    json: bool = False  # print the result as one JSON object


def joined_callbacks(argv: list[str]) -> list[str]:
    """`--callback NAME`, however often, as the one flag `--callbacks` of the run's settings."""
    words, names, queue = [], [], list(argv)
    while queue:
        word = queue.pop(0)
        flag, equals, value = word.partition("=")
        if flag != "--callback":
            words.append(word)
        elif equals or queue:
            names.append(value if equals else queue.pop(0))
        else:
            raise UsageError("--callback: a value is missing; expected module:Name(arguments)")
    return [*words, "--callbacks", *names] if names else words
