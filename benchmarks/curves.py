"""Whether two sets of runs learn alike: their curves over each other, and how far they are apart.

    python -m benchmarks.curves OUT.png --one NAME RUN... --other NAME RUN...

Prints each run's mean return over its curve and that of its last evaluation, and how far the means
of the sets are apart beside how far the runs of the second set are from each other.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.picture import blank
from operant.report.groups import EVALUATION
from operant.report.plot import COLOURS, Curve, draw_group, style_axes
from operant.session.log import Series, read_metrics

RETURN = "rollout/ep_rew_mean"


class Learned(NamedTuple):
    """What became of one run."""

    curve: Series
    mean: float  # over the curve
    last: float  # evaluation


def main(argv: Sequence[str] | None = None) -> None:
    """Compare, print and draw."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.curves", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("out", type=Path)
    for name in ("--one", "--other"):
        parser.add_argument(name, nargs="+", required=True, metavar=("NAME", "RUN"))
    options = parser.parse_args(argv)
    sets = {
        name: [learned(Path(run)) for run in runs] for name, *runs in (options.one, options.other)
    }
    for name, runs in sets.items():
        means, lasts = (
            [f"{x:.1f}" for x in column] for column in zip(*(r[1:] for r in runs), strict=True)
        )
        print(f"{name}: mean over the curve {', '.join(means)}; last evaluation {', '.join(lasts)}")
    apart, spread = distance(*sets.values())
    print(f"the means are {apart:.1f} apart; runs of {options.other[0]} spread over {spread:.1f}")
    draw(sets, options.out)


def learned(run: Path) -> Learned:
    """What the log of a run says."""
    found = read_metrics(run)
    curve = found[RETURN]
    steps, values = curve
    return Learned(
        curve,
        float(np.trapezoid(values, steps) / (steps[-1] - steps[0])),
        float(found[EVALUATION][1][-1]),
    )


def distance(one: Sequence[Learned], other: Sequence[Learned]) -> tuple[float, float]:
    """How far the sets' means over the curve are apart, and how far the other's runs are."""
    ours, theirs = ([run.mean for run in runs] for runs in (one, other))
    return abs(float(np.mean(ours) - np.mean(theirs))), max(theirs) - min(theirs)


def draw(sets: dict[str, list[Learned]], out: Path) -> None:
    """Both sets over each other."""
    figure = blank(6.5, 3.6)
    axes = figure.add_subplot()
    for colour, (name, runs) in zip(COLOURS, sets.items(), strict=False):
        draw_group(axes, name, [Curve(name, run.curve, None) for run in runs], colour)
    style_axes(axes, RETURN)
    figure.savefig(out)


if __name__ == "__main__":
    main()
