"""Summary of a benchmark's runs: medians, ranges, ratios, and the JSON line at its end."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.works import LIMIT, NAMES, OURS, WORKS, Work

Run = dict[str, Any]  # what one job reported
Runs = Mapping[str, Sequence[Run]]  # by contender
HOME = Path(__file__).parent / "results"


def figures(runs: Runs) -> dict[str, list[float]]:
    """The figure of every run, by contender."""
    return {name: [float(run["value"]) for run in found] for name, found in runs.items()}


def ratio_of(work: Work, ours: float, theirs: float) -> float:
    """How many times as good our figure is, whether more or less is better."""
    return ours / theirs if work.better == "more" else theirs / ours


def best_peer(work: Work, medians: Mapping[str, float]) -> str | None:
    """The peer with the best figure."""
    peers = {name: value for name, value in medians.items() if name not in (OURS, LIMIT)}
    if not peers:
        return None
    choose = max if work.better == "more" else min
    return choose(peers, key=lambda name: peers[name])


def closing(name: str, runs: Runs) -> dict[str, Any]:
    """The JSON line at the end of a benchmark."""
    work = WORKS[name]
    medians = {who: median(values) for who, values in figures(runs).items()}
    ours, reported = medians[OURS], runs[OURS]
    best, limit = best_peer(work, medians), medians.get(LIMIT)
    # A job that has no peers or no limit may report a comparison of its own.
    ratio, fraction = middle(reported, "ratio"), middle(reported, "limit_fraction")
    return {
        "work": name,
        "sps": round(middle(reported, "sps") or ours, 1),
        "best_peer": best or reported[0].get("best_peer"),
        "ratio": round(ratio_of(work, ours, medians[best]), 3) if best else ratio,
        "limit_fraction": round(ratio_of(work, ours, limit), 3) if limit else fraction,
        **{key: middle(reported, key) for key in work.extra},
    }


def middle(found: Sequence[Run], key: str) -> Any:
    """The median of a figure over runs, or of each of its parts; None if no run reports it."""
    values = [run[key] for run in found if run.get(key) is not None]
    if not values:
        return None
    if isinstance(values[0], dict):
        return {name: middle(values, name) for name in values[0]}
    return round(median(values), 4)


def table(name: str, runs: Runs) -> str:
    """Medians, ranges and ratios for the terminal."""
    work = WORKS[name]
    found = figures(runs)
    ours = median(found[OURS])
    lines = []
    for who, values in found.items():
        value = median(values)
        span = f"{shown(min(values))} to {shown(max(values))}"
        ratio = f"×{ratio_of(work, ours, value):.2f}"
        lines.append(f"  {NAMES.get(who, who):18} {shown(value):>9} {work.unit}  ({span})  {ratio}")
    return "\n".join(lines)


def shown(value: float) -> str:
    """A figure with three significant digits, or in whole numbers."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def write(name: str, result: Mapping[str, Any]) -> Path:
    """Save a result."""
    HOME.mkdir(exist_ok=True)
    path = HOME / f"{name}.json"
    path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return path


def read(name: str) -> dict[str, Any] | None:
    """A saved result, if there is one."""
    path = HOME / f"{name}.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else None
