"""Writes the saved results into `docs/benchmarks.md`, with their pictures.

python -m benchmarks.table
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import summary
from benchmarks.machine import QUIET_SHARE
from benchmarks.works import LEAST_OF_LIMIT, LIMIT, NAMES, OURS, WORKS, Work
from operant.report.profile import ACTIVITIES

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "benchmarks.md"
BEGIN, END = "<!-- results -->", "<!-- end of results -->"
HEAD = (
    "| benchmark | Operant | peer | ratio | aim | limit | of the limit |\n"
    "|---|---:|---:|---:|---:|---:|---:|"
)
MISSED = " **falls short**"
FULL_SECONDS = 20.0  # a shorter run is not reliable
Result = Mapping[str, Any]


def main() -> None:
    """Update the page and its pictures."""
    saved = {name: found for name in WORKS if (found := summary.read(name)) is not None}
    PAGE.write_text(filled(PAGE.read_text("utf-8"), saved), "utf-8")
    for name in saved:
        shutil.copyfile(summary.HOME / f"{name}.png", DOCS / picture(name))
    print(f"{PAGE}: {len(saved)} of {len(WORKS)} works")


def filled(page: str, saved: Mapping[str, Result]) -> str:
    """The page with these results between its markers."""
    before, _, found = page.partition(BEGIN)
    _, _, after = found.partition(END)
    rows = [row(name, saved.get(name)) for name in WORKS]
    pictures = [f"![{WORKS[name].title}]({picture(name)})" for name in saved]
    parts = ["\n".join([HEAD, *rows]), *notes(saved), *further(saved), *times(saved), *pictures]
    return f"{before}{BEGIN}\n\n" + "\n\n".join(parts) + f"\n\n{END}{after}"


def row(name: str, result: Result | None) -> str:
    """The row of one benchmark."""
    work = WORKS[name]
    if result is None:
        return f"| {name} | not measured yet | | | {aim(work)} | | |"
    medians = {who: median(values) for who, values in summary.figures(result["runs"]).items()}
    ours, limit = medians[OURS], medians.get(LIMIT)
    ratio, theirs = against(work, result, medians)
    cells = [
        f"{name}{mark(result)}",
        f"{summary.shown(ours)} {work.unit}",
        theirs,
        f"×{ratio:.2f}" if ratio else "–",
        aim(work) + verdict(work, ratio, ours),
        summary.shown(limit) if limit else "–",
        of_limit(result["limit_fraction"]),
    ]
    return f"| {' | '.join(cells)} |"


def against(work: Work, result: Result, medians: Mapping[str, float]) -> tuple[float | None, str]:
    """The ratio to the peer that the aim refers to, and the figure of that peer."""
    theirs = medians.get(work.against)
    if theirs is None:
        return result["ratio"], result["best_peer"] or "–"
    shown = f"{NAMES[work.against]} {summary.shown(theirs)}"
    return summary.ratio_of(work, medians[OURS], theirs), shown


def aim(work: Work) -> str:
    """The aim of a benchmark: a ratio, or a figure not to exceed."""
    if work.ratio is not None:
        return f"×{work.ratio:g}"
    return "–" if work.most is None else f"{work.most:g} {work.unit}"


def verdict(work: Work, ratio: float | None, ours: float) -> str:
    """The mark of a row that misses its aim."""
    if work.ratio is not None:
        missed = ratio is None or ratio < work.ratio
    else:
        missed = work.most is not None and ours > work.most
    return MISSED if missed else ""


def of_limit(fraction: float | None) -> str:
    """The fraction of the limit, marked if it is too low."""
    if fraction is None:
        return "–"
    return f"{fraction:.2f}" + (MISSED if fraction < LEAST_OF_LIMIT else "")


def mark(result: Result) -> str:
    """The mark of a result that is not reliable."""
    return " †" if brief(result) or disturbed(result) or beyond(result) else ""


def brief(result: Result) -> bool:
    """Whether there were too few runs, or too short ones."""
    too_few = result["repeats"] < WORKS[result["work"]].repeats
    return bool(result["quick"]) or too_few or result["seconds"] < FULL_SECONDS


def disturbed(result: Result) -> bool:
    """Whether other programs used the machine during a run."""
    return any(run["others"] > QUIET_SHARE for found in result["runs"].values() for run in found)


def beyond(result: Result) -> bool:
    """Whether Operant was faster than the limit, so that the limit is not one."""
    return (result["limit_fraction"] or 0.0) > 1.0


def notes(saved: Mapping[str, Result]) -> list[str]:
    """Footnotes: unreliable results, and the machine that was measured on."""
    lines = []
    if any(mark(result) for result in saved.values()):
        lines.append(
            "† Not reliable: fewer or shorter runs than usual, or other programs used the machine, "
            "or Operant was faster than the measured limit."
        )
    machines: dict[str, list[str]] = {}
    for name, result in saved.items():
        machines.setdefault(described(result["machine"]), []).append(name)
    if len(machines) > 1:
        rows = [f"{machine} ({', '.join(names)})" for machine, names in machines.items()]
        lines.append(f"Measured on: {'; '.join(rows)}.")
    elif machines:
        lines.append(f"Measured on: {next(iter(machines))}.")
    return lines


def further(saved: Mapping[str, Result]) -> list[str]:
    """Further figures with an aim of their own."""
    lines = [
        f"| {name} | {part} | ×{result[key][part]:.2f} | ×{least:g}"
        f"{MISSED if result[key][part] < least else ''} |"
        for name, result in saved.items()
        for key, parts in WORKS[name].least.items()
        for part, least in parts.items()
    ]
    return ["\n".join(["| benchmark | | speed-up | aim |", "|---|---|---:|---:|", *lines])] * bool(
        lines
    )


def times(saved: Mapping[str, Result]) -> list[str]:
    """Microseconds per step by activity, of Operant and of the limit."""
    found = {
        (name, who): summary.middle(runs, "spent")
        for name, result in saved.items()
        for who, runs in result["runs"].items()
    }
    spent = {key: parts for key, parts in found.items() if parts}
    if not spent:
        return []
    named = sorted({part for parts in spent.values() for part in parts}, key=_place)
    lines = [f"| microseconds a step | | {' | '.join(named)} |", "|---|---|" + "---:|" * len(named)]
    for (name, who), parts in spent.items():
        cells = [summary.shown(parts[part]) if part in parts else "" for part in named]
        lines.append(f"| {name} | {NAMES[who]} | {' | '.join(cells)} |")
    return ["\n".join(lines)]


def _place(part: str) -> tuple[int, str]:
    return (ACTIVITIES.index(part) if part in ACTIVITIES else len(ACTIVITIES), part)


def described(machine: Result) -> str:
    """Processor, cores and vector instructions."""
    return f"{machine['cpu']}, {machine['cores']} cores, {' '.join(machine['vectors'])}"


def picture(name: str) -> str:
    """Path of a benchmark's picture, relative to the page."""
    return f"images/benchmark-{name}.png"


if __name__ == "__main__":
    main()
