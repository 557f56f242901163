"""What the runs of a work come to: medians, spread, ratios, and the line that closes it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.works import LIMIT, NAMES, OURS, WORKS, Work

Run = dict[str, Any]  # what one job told
Runs = Mapping[str, Sequence[Run]]  # by contender
HOME = Path(__file__).parent / "results"


def figures(runs: Runs) -> dict[str, list[float]]:
    """The compared figure of every run, by contender."""
    return {name: [float(run["value"]) for run in found] for name, found in runs.items()}


def ratio_of(work: Work, ours: float, theirs: float) -> float:
    """How many times as good as theirs ours is."""
    return ours / theirs if work.better == "more" else theirs / ours


def best_peer(work: Work, medians: Mapping[str, float]) -> str | None:
    """The peer to beat."""
    peers = {name: value for name, value in medians.items() if name not in (OURS, LIMIT)}
    if not peers:
        return None
    choose = max if work.better == "more" else min
    return choose(peers, key=lambda name: peers[name])


def closing(name: str, runs: Runs) -> dict[str, Any]:
    """The result in one line."""
    work = WORKS[name]
    medians = {who: median(values) for who, values in figures(runs).items()}
    ours, told = medians[OURS], runs[OURS]
    best, limit = best_peer(work, medians), medians.get(LIMIT)
    # A job without peers or limit of its own kind may know what to be compared with.
    ratio, fraction = middle(told, "ratio"), middle(told, "limit_fraction")
    return {
        "work": name,
        "sps": round(middle(told, "sps") or ours, 1),
        "best_peer": best or told[0].get("best_peer"),
        "ratio": round(ratio_of(work, ours, medians[best]), 3) if best else ratio,
        "limit_fraction": round(ratio_of(work, ours, limit), 3) if limit else fraction,
        **{key: middle(told, key) for key in work.extra},
    }


def middle(found: Sequence[Run], key: str) -> Any:
    """The median of a figure over runs, also of figures by name; None where nobody tells it."""
    told = [run[key] for run in found if run.get(key) is not None]
    if not told:
        return None
    if isinstance(told[0], dict):
        return {name: middle(told, name) for name in told[0]}
    return round(median(told), 4)


def table(name: str, runs: Runs) -> str:
    """Medians, spread and ratios for the terminal."""
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
    """A figure with about three digits that matter."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def write(name: str, result: Mapping[str, Any]) -> Path:
    """Keep a result."""
    HOME.mkdir(exist_ok=True)
    path = HOME / f"{name}.json"
    path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return path


def read(name: str) -> dict[str, Any] | None:
    """A result that was kept, if there is one."""
    path = HOME / f"{name}.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else None
