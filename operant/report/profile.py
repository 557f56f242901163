"""Where the time of a run went, as a table and an image, and how close it came to its limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from operant.core.errors import UsageError
from operant.report.plot import COLOURS
from operant.session.log import read_metrics

SHARE = "time/share_"  # prefix of the metrics
RENAMED = {"storing": "moving"}  # activities that the log calls otherwise
ACTIVITIES = ("acting", "stepping", "moving", "learning", "waiting", "idling", "other")
NECESSARY = ("acting", "stepping", "learning")  # in every training loop
Column = np.ndarray[Any, np.dtype[np.float64]]


class Profile(NamedTuple):
    """Seconds per step by activity, at each line of the log."""

    steps: Column  # at the end of each epoch
    counts: Column  # steps in it
    wall: Column  # seconds it took
    costs: dict[str, Column]

    @property
    def seconds(self) -> dict[str, float]:
        """Total seconds by activity; of parallel processes, the sum may exceed the wall time."""
        return {name: float(cost @ self.counts) for name, cost in self.costs.items()}

    @property
    def pace(self) -> float:
        """Steps per second over the whole run."""
        return float(self.counts.sum() / self.wall.sum())

    @property
    def limit(self) -> float:
        """Steps per second if only acting, stepping and learning took time, each at its fastest.

        With an asynchronous sampler, whose workers idle until learning is done, acting and
        stepping overlap with learning.
        """
        best = {name: float(self.costs[name].min()) for name in NECESSARY if name in self.costs}
        learning = best.pop("learning", 0.0)
        collecting = sum(best.values())
        overlapped = "idling" in self.costs
        return 1 / (max(collecting, learning) if overlapped else collecting + learning)


def profile(run: Path) -> Profile:
    """The profile of a run, from its log."""
    series = read_metrics(run)
    if "time/fps" not in series:
        raise UsageError(f"{run}: its log has no lines yet, so there is nothing to profile")
    steps, fps = series["time/fps"]
    counts = np.diff(steps, prepend=0).astype(float)
    costs = {name: np.zeros(len(steps)) for name in ACTIVITIES}
    for key, (at, values) in series.items():
        if key.startswith(SHARE):
            name = key.removeprefix(SHARE)
            costs[RENAMED.get(name, name)][np.searchsorted(steps, at)] = values
    costs["other"] = np.maximum(0.0, 1.0 - sum(costs.values()))
    spent = {name: cost / fps for name, cost in costs.items() if cost.any()}
    return Profile(steps.astype(float), counts, counts / fps, spent)


def table(found: Profile) -> str:
    """Seconds, shares and microseconds per step by activity, and the fraction of the limit."""
    total = float(found.wall.sum())
    lines = [f"{'activity':10} {'seconds':>9} {'share':>7} {'µs/step':>10} {'at best':>9}"]
    for name, seconds in found.seconds.items():
        step, best = seconds / found.counts.sum() * 1e6, found.costs[name].min() * 1e6
        lines.append(f"{name:10} {seconds:9.2f} {seconds / total:7.1%} {step:10.1f} {best:9.1f}")
    reached = f"{found.pace:,.0f} steps/s, {found.pace / found.limit:.2f} of the limit"
    limit = f"{found.limit:,.0f} steps/s if acting, stepping and learning were all"
    lines.append(f"{reached}: {limit}, each at its best in this run")
    return "\n".join(lines)


def plot_profile(found: Profile, out: Path) -> None:
    """Plot microseconds per step by activity over the run, and each activity's share."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415  # slow to import
    from matplotlib.figure import Figure  # noqa: PLC0415
    from matplotlib.ticker import EngFormatter  # noqa: PLC0415

    figure = Figure(figsize=(9, 4), dpi=144, layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    colours = dict(zip(ACTIVITIES, COLOURS, strict=False))
    costs = {name: cost * 1e6 for name, cost in found.costs.items()}
    shades = [colours[name] for name in costs]
    left.stackplot(found.steps, list(costs.values()), labels=list(costs), colors=shades)
    left.set(xlabel="environment steps", ylabel="µs/step", xlim=(0, found.steps[-1]))
    left.xaxis.set_major_formatter(EngFormatter(sep=""))
    shares = {name: s / found.wall.sum() for name, s in found.seconds.items()}
    bars = right.barh(list(shares), list(shares.values()), color=shades)
    right.bar_label(bars, [f"{share:.0%}" for share in shares.values()], padding=3)
    right.set(xlabel="share of the time", xlim=(0, 1.15 * max(shares.values())))
    right.invert_yaxis()
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(
        f"{found.pace:,.0f} steps/s, {found.pace / found.limit:.2f} of the limit", fontsize="medium"
    )
    figure.savefig(out)
