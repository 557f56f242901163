"""The options of each command, besides the settings of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from operant.core.config import Config, Count, CountOrZero
from operant.core.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class TrainOptions(Config):
    """What to start from, where to write, and what to show."""

    config: str | None = None  # YAML file with settings; flags override it
    recipe: str = "auto"  # tuned settings to start from: a name, none, or auto: the one that fits
    dry_run: bool = False  # print the settings, the network and the memory needed, and stop
    runs: str = "runs"  # directory for run directories
    name: str = ""  # of the run directory; default: agent, environment, seed and time
    video: Literal["none", "gif", "mp4"] = "none"  # record an episode of the trained agent
    profile: bool = False  # print and plot where the time went
    quiet: bool = False  # show no progress


@dataclass(frozen=True, kw_only=True)
class ResumeOptions(Config):
    """How long to train, where runs are, and what to show."""

    steps: Count | None = None  # new total of environment steps, of a finished run too
    without_callbacks: bool = False  # go on without the callbacks of the run
    runs: str = "runs"  # directory of run directories
    profile: bool = False  # print and plot where the time went
    quiet: bool = False  # show no progress


@dataclass(frozen=True, kw_only=True)
class EvalOptions(Config):
    """How to evaluate, and where runs are."""

    episodes: Count = 20  # number of evaluation episodes
    seed: CountOrZero = 1_000  # random seed of the environments
    best: bool = False  # take the weights with the best evaluation, not the last ones
    json: bool = False  # print the result as one JSON object
    runs: str = "runs"  # directory of run directories


@dataclass(frozen=True, kw_only=True)
class PlayOptions(Config):
    """What to play, and where runs are."""

    record: str | None = None  # write a .gif or .mp4 file instead of opening a window
    episodes: Count = 1  # number of episodes
    best: bool = False  # take the weights with the best evaluation, not the last ones
    runs: str = "runs"  # directory of run directories


@dataclass(frozen=True, kw_only=True)
class PlotOptions(Config):
    """What to plot, and where runs are."""

    out: str = ""  # PNG file to write; default: learning-curve.png, in the run if there is only one
    metric: str = "rollout/ep_rew_mean"  # metric to plot, by its name in the log
    runs: str = "runs"  # directory of run directories


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
