"""Results as pictures, in the colours of the learning curves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.summary import figures, middle, shown
from benchmarks.works import LIMIT, NAMES, OURS, WORKS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which people of any colour vision can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
GREY = "#666666"


def draw(name: str, result: Mapping[str, Any], path: Path) -> None:
    """The picture of a result."""
    points = result["runs"][OURS][-1].get("points")
    if points:
        figure = scaling(points)
    else:
        spent = {who: middle(runs, "spent") for who, runs in result["runs"].items()}
        spent = {who: parts for who, parts in spent.items() if parts}
        figure = blank(6.5, 4.6 if spent else 3.2)
        panels = figure.subplots(
            1 + bool(spent), 1, squeeze=False, height_ratios=(3, 2)[: 1 + bool(spent)]
        )
        bars(panels[0, 0], name, figures(result["runs"]))
        if spent:
            times(panels[1, 0], spent)
    figure.savefig(path)


def bars(axes: Axes, name: str, found: Mapping[str, list[float]]) -> None:
    """A bar for each contender up to its median, with its range; the limit is a line."""
    work = WORKS[name]
    named = [who for who in found if who != LIMIT]
    for place, who in enumerate(named):
        values = found[who]
        middle = median(values)
        reach = [[middle - min(values)], [max(values) - middle]]
        colour = COLOURS[0] if who == OURS else COLOURS[1 + (place - 1) % (len(COLOURS) - 1)]
        axes.barh(place, middle, xerr=reach, color=colour, height=0.6, capsize=3, ecolor=GREY)
        axes.text(0, place, f"  {shown(middle)}", va="center", color="white", fontweight="bold")
    if LIMIT in found:
        limit = median(found[LIMIT])
        axes.axvline(limit, color=GREY, linestyle="--", label=f"limit {shown(limit)}")
        axes.legend(frameon=False, fontsize="small")
    axes.set_yticks(range(len(named)), [NAMES[who] for who in named])
    axes.invert_yaxis()
    axes.set_xlabel(f"{work.unit}, {work.better} is better")
    axes.set_title(name, loc="left", fontsize="medium")
    axes.spines[["top", "right"]].set_visible(False)


def times(axes: Axes, spent: Mapping[str, Mapping[str, float]]) -> None:
    """Where the time of a step went, end to end."""
    named = list(dict.fromkeys(part for parts in spent.values() for part in parts))
    ends = dict.fromkeys(spent, 0.0)
    for part, colour in zip(named, COLOURS, strict=False):
        lengths = [parts.get(part, 0.0) for parts in spent.values()]
        axes.barh(list(spent), lengths, left=list(ends.values()), color=colour, label=part)
        ends = {who: end + x for (who, end), x in zip(ends.items(), lengths, strict=True)}
    axes.set_yticks(range(len(spent)), [NAMES[who] for who in spent])
    axes.invert_yaxis()
    axes.set_xlabel("microseconds a step")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(
        frameon=False,
        fontsize="x-small",
        ncols=len(named),
        loc="lower center",
        bbox_to_anchor=(0.5, 1),
    )


def scaling(points: Mapping[str, Mapping[str, Mapping[str, float]]]) -> Figure:
    """Steps per second over environments, a panel for each kind of environment."""
    figure = blank(9.0, 5.2)
    axes = figure.subplots(2, -(-len(points) // 2), squeeze=False).flatten()
    for ax, (kind, by_sampler) in zip(axes, points.items(), strict=False):
        for place, (sampler, by_count) in enumerate(by_sampler.items()):
            counts = [int(count) for count in by_count]
            rates = list(by_count.values())
            ax.loglog(counts, rates, "o-", color=COLOURS[place], markersize=3, label=sampler)
        ax.set_title(kind, loc="left", fontsize="small")
        ax.grid(color="#dddddd", linewidth=0.6)
        ax.spines[["top", "right"]].set_visible(False)
    for ax in axes[len(points) :]:
        ax.set_axis_off()
    lines, labels = axes[len(points) - 1].get_legend_handles_labels()
    figure.legend(lines, labels, frameon=False, fontsize="small", loc="lower right")
    figure.supxlabel("environments", fontsize="small")
    figure.supylabel("steps/s", fontsize="small")
    return figure


def blank(width: float, height: float) -> Figure:
    """A figure without a screen, in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415  # over a second
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(width, height), dpi=144, layout="constrained")
    FigureCanvasAgg(figure)
    return figure
