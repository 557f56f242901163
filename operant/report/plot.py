"""Learning curves of one or more runs as an image file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from operant.core.errors import UsageError, suggest
from operant.session.log import Series, read_metrics
from operant.session.run_directory import PROVENANCE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EVALUATION = "eval/mean_reward"
LABELS = {
    "rollout/ep_rew_mean": "mean return of the last episodes",
    "rollout/ep_len_mean": "mean length of the last episodes",
    "eval/mean_reward": "mean return in evaluation",
}
# The palette of Okabe and Ito, distinguishable with any colour vision.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#444444")


class Curve(NamedTuple):
    """The values of one run over steps, and its evaluations."""

    label: str
    values: Series
    evaluations: Series | None


def plot_runs(run_dirs: Sequence[Path], out: Path, key: str = "rollout/ep_rew_mean") -> None:
    """Plot `key` over steps; runs of one agent and environment become a mean with a band."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415  # slow to import
    from matplotlib.figure import Figure  # noqa: PLC0415

    groups: dict[str, list[Curve]] = {}
    for run in run_dirs:
        curve = _curve(run, key)
        groups.setdefault(curve.label, []).append(curve)
    if not groups:
        raise UsageError("there is nothing to plot; name at least one run")
    figure = Figure(figsize=(7.5, 4.5), dpi=144, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for i, (label, curves) in enumerate(groups.items()):
        draw_group(axes, label, curves, COLOURS[i % len(COLOURS)])
    style_axes(axes, key)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(out)
    except (OSError, ValueError) as error:  # matplotlib's ValueError names an unknown suffix
        raise UsageError(f"{out}: cannot be written: {error}") from None


def average(curves: Sequence[Series]) -> tuple[Series, np.ndarray[Any, np.dtype[np.float64]]]:
    """Mean and standard deviation over runs, on the steps that all of them reached."""
    first = max(steps[0] for steps, _ in curves)
    last = min(steps[-1] for steps, _ in curves)
    grid = np.unique(np.concatenate([s[(s >= first) & (s <= last)] for s, _ in curves]))
    values = np.stack([np.interp(grid, steps, found) for steps, found in curves])
    return (grid, values.mean(axis=0)), values.std(axis=0, ddof=1)


def _curve(run: Path, key: str) -> Curve:
    metrics = read_metrics(run)
    finite = {name: found for name, s in metrics.items() if len((found := _finite(s))[0])}
    if key not in finite:
        raise UsageError(f"{run}: has no values of {key!r} yet{suggest(key, finite)}")
    evaluations = finite.get(EVALUATION) if key.startswith("rollout/ep_rew") else None
    return Curve(_label(run), finite[key], evaluations)


def _finite(series: Series) -> Series:
    steps, values = series
    return steps[np.isfinite(values)], values[np.isfinite(values)]


def _label(run: Path) -> str:
    try:
        origin = json.loads((run / PROVENANCE).read_text("utf-8"))
        return f"{origin['agent']} · {origin['env']}"
    except (OSError, ValueError, KeyError, TypeError):
        return run.resolve().name  # a directory without the record of a session


def draw_group(axes: Axes, label: str, curves: Sequence[Curve], colour: str) -> None:
    """Plot the runs of one label: each of them, and their mean with a band of one deviation."""
    if len(curves) == 1:
        axes.plot(*curves[0].values, color=colour, linewidth=1.8, label=label)
    else:
        for curve in curves:
            axes.plot(*curve.values, color=colour, linewidth=0.7, alpha=0.35)
        (steps, mean), spread = average([curve.values for curve in curves])
        axes.fill_between(
            steps, mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0
        )
        name = f"{label} (mean ± sd of {len(curves)} runs)"
        axes.plot(steps, mean, color=colour, linewidth=2.0, label=name)
    for curve in curves:
        if curve.evaluations is not None:
            axes.plot(
                *curve.evaluations, "o", color=colour, markersize=4.5, markeredgecolor="white"
            )


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
        axes.plot([], [], "o", color="#666666", markersize=4.5, label="evaluation")
    legend = axes.legend(frameon=True, fontsize="small", loc="best")
    legend.get_frame().set(edgecolor="none", alpha=0.85)
