"""Learning curves of one or more runs as an image file."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from operant.core.errors import UsageError
from operant.report.groups import EVALUATION, Group, group_runs
from operant.report.statistics import Array, interval, iqm_along
from operant.session.log import Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LABELS = {
    "rollout/ep_rew_mean": "mean return of the last episodes",
    "rollout/ep_len_mean": "mean length of the last episodes",
    "eval/mean_reward": "mean return in evaluation",
}
# The palette of Okabe and Ito, distinguishable with any colour vision.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#444444")
LINES = ("-", "--", ":")  # once the colours are used up
COLUMNS = 3  # panels side by side
MAX_POINTS = 400  # of a curve over several runs
LEGEND_WIDTH = 44  # characters in a line of the legend
EVALUATION_LABEL = "evaluation"


class Curve(NamedTuple):
    """The values of one run over steps, and its evaluations."""

    label: str
    values: Series
    evaluations: Series | None


def plot_runs(run_dirs: Sequence[Path], out: Path, key: str = "rollout/ep_rew_mean") -> None:
    """Plot `key` over steps: a panel for each environment, a curve for each group of runs.

    Runs that differ only in the seed become their interquartile mean with a bootstrap interval.
    """
    if not run_dirs:
        raise UsageError("there is nothing to plot; name at least one run")
    figure = draw_groups(group_runs(run_dirs, key), key)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(out)
    except (OSError, ValueError) as error:  # matplotlib's ValueError names an unknown suffix
        raise UsageError(f"{out}: cannot be written: {error}") from None


def draw_groups(groups: Sequence[Group], key: str) -> Figure:
    """A panel for each environment; a label has one colour in all of them."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415  # slow to import
    from matplotlib.figure import Figure  # noqa: PLC0415

    envs = list(dict.fromkeys(group.env for group in groups))
    places = {label: i for i, label in enumerate(dict.fromkeys(g.label for g in groups))}
    columns = 2 if len(envs) == 4 else min(len(envs), COLUMNS)
    rows = math.ceil(len(envs) / columns)
    size = (7.5, 4.5) if len(envs) == 1 else (5.2 * columns, 4.0 * rows)
    figure = Figure(figsize=size, dpi=144, layout="constrained")
    FigureCanvasAgg(figure)
    for i, env in enumerate(envs):
        axes = figure.add_subplot(rows, columns, i + 1)
        for group in groups:
            if group.env == env:
                place = places[group.label]
                line = LINES[place // len(COLOURS) % len(LINES)]
                draw_group(
                    axes, group.label, curves_of(group, key), COLOURS[place % len(COLOURS)], line
                )
        axes.set_title(env, fontsize="medium")
        style_axes(axes, key)
    return figure


def curves_of(group: Group, key: str) -> list[Curve]:
    """The curve of each run, with its evaluations beside the returns of training."""
    with_evaluations = key.startswith("rollout/ep_rew")
    return [
        Curve(
            group.label,
            member.metrics[key],
            member.metrics.get(EVALUATION) if with_evaluations else None,
        )
        for member in group.members
    ]


def on_one_grid(curves: Sequence[Series]) -> tuple[Array, Array]:
    """Steps that all runs have been through, and `values[run, step]`, interpolated between lines.

    Before a run's first line and beyond its last one nothing is known of it, so the steps end where
    the shortest run does.
    """
    first = max(steps[0] for steps, _ in curves)
    last = min(steps[-1] for steps, _ in curves)
    grid = np.unique(np.concatenate([s[(s >= first) & (s <= last)] for s, _ in curves]))
    if len(grid) > MAX_POINTS:
        grid = grid[np.linspace(0, len(grid) - 1, MAX_POINTS).astype(int)]
    return grid, np.stack([np.interp(grid, steps, found) for steps, found in curves])


def draw_group(
    axes: Axes, label: str, curves: Sequence[Curve], colour: str, line: str = "-"
) -> None:
    """Plot runs of one label: a single one as it is, several as their interquartile mean."""
    name = textwrap.fill(f"{label} (n={len(curves)})", LEGEND_WIDTH)
    if len(curves) == 1:
        _draw_line(axes, curves[0].values, color=colour, linewidth=1.8, linestyle=line, label=name)
        if curves[0].evaluations is not None:
            axes.plot(
                *curves[0].evaluations, "o", color=colour, markersize=4.5, markeredgecolor="white"
            )
        return
    steps, values = on_one_grid([curve.values for curve in curves])
    if bounds := interval(values):
        axes.fill_between(steps, *bounds, color=colour, alpha=0.18, linewidth=0)
    middle = iqm_along(values)
    _draw_line(axes, (steps, middle), color=colour, linewidth=2.0, linestyle=line, label=name)
    for curve in curves:  # from where on not all runs are known, each of them alone
        at, found = curve.values
        alone = at >= (steps[-1] if len(steps) else 0)
        if not len(steps) or alone.sum() > 1:
            _draw_line(axes, (at[alone], found[alone]), color=colour, linewidth=0.7, alpha=0.5)


def _draw_line(axes: Axes, series: tuple[Array, Array] | Series, **style: Any) -> None:
    """A line, or a dot where a line would have no length."""
    axes.plot(*series, marker="." if len(series[0]) == 1 else "", **style)


def style_axes(axes: Axes, key: str) -> None:
    """Set labels, grid and legend."""
    from matplotlib.ticker import EngFormatter  # noqa: PLC0415

    axes.set_xlabel("environment steps")
    axes.set_ylabel(LABELS.get(key, key))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set_xlim(left=0)
    axes.margins(y=0.08)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if any(line.get_marker() == "o" for line in axes.lines):
        axes.plot([], [], "o", color="#666666", markersize=4.5, label=EVALUATION_LABEL)
    style: dict[str, Any] = {"fontsize": "small", "title_fontsize": "small", "alignment": "left"}
    explained = "interquartile mean, 95 % interval" if axes.collections else None
    legend = axes.legend(frameon=True, loc="best", title=explained, **style)
    legend.get_frame().set(edgecolor="none", alpha=0.85)
