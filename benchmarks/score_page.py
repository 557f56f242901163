"""Scores as a table and a picture, and the page of the documentation that shows them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.picture import COLOURS, GREY, blank
from benchmarks.suites import CONTENDERS, SUITES, Task
from operant.report.statistics import iqm

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DOCS = Path(__file__).parent.parent / "docs"
PAGE = "scores.md"
COLUMNS = 3  # panels beside each other
BELOW = "mean return of 20 episodes without exploration; further right is better"
Line = dict[str, Any]  # env, agent, steps, num_envs, contender, seed, and score or skipped
Key = tuple[Task, str, int]  # a task, who does it, and its seed


def publish(suite: str, lines: Sequence[Line]) -> Path:
    """Draw the picture of a suite and put it, with the table, into the page."""
    page, image = DOCS / PAGE, f"images/score-{suite}.png"
    draw(suite, lines, DOCS / image)
    content = f"{table(suite, lines)}\n\n![Scores of the suite {suite}]({image})"
    page.write_text(filled(page.read_text("utf-8"), suite, content), "utf-8")
    return page


def filled(page: str, suite: str, content: str) -> str:
    """The page with this content between the markers of a suite."""
    begin, end = f"<!-- scores {suite} -->", f"<!-- end of scores {suite} -->"
    before, found, rest = page.partition(begin)
    _, ended, after = rest.partition(end)
    if not (found and ended):
        raise ValueError(f"{PAGE} has no lines {begin} and {end}; add them where the scores belong")
    return f"{before}{begin}\n\n{content}\n\n{end}{after}"


def table(suite: str, lines: Sequence[Line]) -> str:
    """A row a task, a column a contender: the interquartile mean and the range over seeds."""
    names = list(CONTENDERS)
    rows = [f"| task | agent | steps | {' | '.join(CONTENDERS.values())} |"]
    rows.append("|---|---|---:|" + "---:|" * len(names))
    for task in SUITES[suite]:
        cells = [cell(of(lines, task, name)) for name in names]
        if any(cells):
            rows.append(f"| {task.env} | {task.agent} | {task.steps:,} | {' | '.join(cells)} |")
    return "\n".join(rows)


def cell(lines: Sequence[Line]) -> str:
    """What a contender reached."""
    scores = reached(lines)
    if not scores:
        return "–" if lines else ""
    spread = f"{min(scores):,.1f} to {max(scores):,.1f}" if len(scores) > 1 else "one run"
    return f"{iqm(scores):,.1f} ({spread})"


def draw(suite: str, lines: Sequence[Line], path: Path) -> None:
    """A panel a task: every run is a point, with their range and interquartile mean."""
    tasks = [t for t in SUITES[suite] if any(reached(of(lines, t, who)) for who in CONTENDERS)]
    rows = max(1, -(-len(tasks) // COLUMNS))
    figure = blank(11.0, 0.5 + 1.55 * rows)
    panels = figure.subplots(rows, COLUMNS, squeeze=False)
    for place, axes in enumerate(panels.flatten()):
        if place >= len(tasks):
            axes.set_axis_off()
            continue
        scores = [reached(of(lines, tasks[place], who)) for who in CONTENDERS]
        _panel(axes, tasks[place], scores, named=place % COLUMNS == 0)
    figure.supxlabel(BELOW, fontsize="small")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def _panel(axes: Axes, task: Task, scores: Sequence[Sequence[float]], named: bool) -> None:
    """One task; contenders are `named` at the left of a row of panels."""
    for place, (found, colour) in enumerate(zip(scores, COLOURS, strict=False)):
        if found:
            axes.plot([min(found), max(found)], [place, place], color=colour, linewidth=2)
            axes.plot(found, [place] * len(found), "o", color=colour, markersize=4)
            axes.plot(iqm(found), place, "|", color=colour, markersize=16, markeredgewidth=3)
    axes.set_ylim(len(scores) - 0.4, -0.6)
    names = list(CONTENDERS.values()) if named else [""] * len(CONTENDERS)
    axes.set_yticks(range(len(CONTENDERS)), names)
    steps = f"{task.steps // 1000}k steps"
    axes.set_title(f"{task.env}, {task.agent}, {steps}", loc="left", fontsize="small")
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.tick_params(labelsize="x-small", color=GREY)
    axes.locator_params(axis="x", nbins=5)
    axes.spines[["top", "right"]].set_visible(False)


def of(lines: Sequence[Line], task: Task, contender: str) -> list[Line]:
    """The lines of a contender in a task."""
    return [line for line in lines if key_of(line)[:2] == (task, contender)]


def reached(lines: Sequence[Line]) -> list[float]:
    """The scores in these lines; a run that was skipped has none."""
    return [line["score"] for line in lines if "score" in line]


def key_of(line: Line) -> Key:
    """Which run a line is of."""
    return Task(line["env"], line["agent"], line["steps"]), line["contender"], line["seed"]
