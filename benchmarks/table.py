"""Writes the results that were kept into `docs/benchmarks.md`, with their pictures.

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
from operant.report.profile import ORDER

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "benchmarks.md"
BEGIN, END = "<!-- results -->", "<!-- end of results -->"
HEAD = (
    "| work | Operant | peer | ratio | aim | limit | of the limit |\n"
    "|---|---:|---:|---:|---:|---:|---:|"
)
SHORT = " **falls short**"
FULL_SECONDS = 20.0  # of a run that is worth its figure
Result = Mapping[str, Any]


def main() -> None:
    """Bring the page up to date."""
    kept = {name: found for name in WORKS if (found := summary.read(name)) is not None}
    PAGE.write_text(filled(PAGE.read_text("utf-8"), kept), "utf-8")
    for name in kept:
        shutil.copyfile(summary.HOME / f"{name}.png", DOCS / picture(name))
    print(f"{PAGE}: {len(kept)} of {len(WORKS)} works")


def filled(page: str, kept: Mapping[str, Result]) -> str:
    """The page with these results between its markers."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    rows = [row(name, kept.get(name)) for name in WORKS]
    pictures = [f"![{WORKS[name].title}]({picture(name)})" for name in kept]
    parts = ["\n".join([HEAD, *rows]), *notes(kept), *further(kept), *times(kept), *pictures]
    return f"{before}{BEGIN}\n\n" + "\n\n".join(parts) + f"\n\n{END}{after}"


def row(name: str, result: Result | None) -> str:
    """One work's line."""
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
    """How many times as good as the contender that the aim names, and that one's figure."""
    theirs = medians.get(work.against)
    if theirs is None:
        return result["ratio"], result["best_peer"] or "–"
    shown = f"{NAMES[work.against]} {summary.shown(theirs)}"
    return summary.ratio_of(work, medians[OURS], theirs), shown


def aim(work: Work) -> str:
    """What is to be reached."""
    if work.ratio is not None:
        return f"×{work.ratio:g}"
    return "–" if work.most is None else f"{work.most:g} {work.unit}"


def verdict(work: Work, ratio: float | None, ours: float) -> str:
    """A word for a row that falls short of its aim."""
    if work.ratio is not None:
        short = ratio is None or ratio < work.ratio
    else:
        short = work.most is not None and ours > work.most
    return SHORT if short else ""


def of_limit(fraction: float | None) -> str:
    """How much of the limit was reached, and whether that is enough."""
    if fraction is None:
        return "–"
    return f"{fraction:.2f}" + (SHORT if fraction < LEAST_OF_LIMIT else "")


def mark(result: Result) -> str:
    """A sign for figures that are not to be trusted."""
    return " †" if brief(result) or disturbed(result) or beyond(result) else ""


def brief(result: Result) -> bool:
    """Whether it was only a look: too few runs, or too short ones."""
    few = result["repeats"] < WORKS[result["work"]].repeats
    return bool(result["quick"]) or few or result["seconds"] < FULL_SECONDS


def disturbed(result: Result) -> bool:
    """Whether others used the machine while it was measured."""
    return any(run["others"] > QUIET_SHARE for found in result["runs"].values() for run in found)


def beyond(result: Result) -> bool:
    """Whether Operant was faster than the limit, so that the limit cannot be one."""
    return (result["limit_fraction"] or 0.0) > 1.0


def notes(kept: Mapping[str, Result]) -> list[str]:
    """What has to be said about the figures, and where they come from."""
    said = []
    if any(mark(result) for result in kept.values()):
        said.append(
            "† Not to be relied on: fewer or shorter runs than usual, or others used the machine "
            "meanwhile, or Operant was faster than what was measured as the limit."
        )
    machines: dict[str, list[str]] = {}
    for name, result in kept.items():
        machines.setdefault(described(result["machine"]), []).append(name)
    if len(machines) > 1:
        rows = [f"{machine} ({', '.join(names)})" for machine, names in machines.items()]
        said.append(f"Measured on: {'; '.join(rows)}.")
    elif machines:
        said.append(f"Measured on: {next(iter(machines))}.")
    return said


def further(kept: Mapping[str, Result]) -> list[str]:
    """Figures that have aims of their own beside the one that is compared."""
    lines = [
        f"| {name} | {part} | ×{result[key][part]:.2f} | ×{least:g}"
        f"{SHORT if result[key][part] < least else ''} |"
        for name, result in kept.items()
        for key, parts in WORKS[name].least.items()
        for part, least in parts.items()
    ]
    return ["\n".join(["| work | | times one | aim |", "|---|---|---:|---:|", *lines])] * bool(
        lines
    )


def times(kept: Mapping[str, Result]) -> list[str]:
    """Where the time of a step went, by activity, and what the limit takes for it."""
    found = {
        (name, who): summary.middle(runs, "spent")
        for name, result in kept.items()
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
    return (ORDER.index(part) if part in ORDER else len(ORDER), part)


def described(machine: Result) -> str:
    """A machine in a few words."""
    return f"{machine['cpu']}, {machine['cores']} cores, {' '.join(machine['vectors'])}"


def picture(name: str) -> str:
    """Where the page finds a work's picture."""
    return f"images/benchmark-{name}.png"


if __name__ == "__main__":
    main()
