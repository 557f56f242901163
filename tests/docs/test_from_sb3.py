"""The page for users of Stable-Baselines3: every line of its right column runs."""

from __future__ import annotations

import re
import shlex
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from running import call

from operant.agents import AGENTS

PAGE = Path(__file__).parents[2] / "docs" / "from-sb3.md"
CODE = re.compile(r"`([^`]+)`")
CONTINUOUS = ("sac", "ddpg", "ddpg-per", "hddpg", "td3", "maddpg")
ENV = dict.fromkeys(CONTINUOUS, "MountainCarContinuous-v0")


def tables() -> list[list[list[str]]]:
    """The rows of each table, by cell, without heads and rules."""
    lines = PAGE.read_text("utf-8").splitlines()
    runs = [list(rows) for is_row, rows in groupby(lines, lambda x: x.startswith("|")) if is_row]
    return [[re.split(r" ?\| ?", row)[1:-1] for row in rows[2:]] for rows in runs]


PYTHON, COMMANDS, SETTINGS, CALLBACKS, OWN = tables()


def code_of(cell: str) -> list[str]:
    """The lines of a cell that is nothing but code; none of another."""
    return CODE.findall(cell) if not CODE.sub("", cell).replace("<br>", "").strip() else []


def flags(agent: str) -> list[list[str]]:
    """The flags in the right column for an agent, by row."""
    rows = [(CODE.findall(cell)[0], to) for _, cell, to in [*SETTINGS, *CALLBACKS] if to]
    return [shlex.split(code) for code, to in rows if to == "all" or agent in to.split(", ")]


def test_the_lines_of_python_and_then_the_commands_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {}
    lines = [line for _, cell in PYTHON for line in code_of(cell)]
    exec("\n".join(["import gymnasium", "import operant", *lines]), space)
    assert (space["run"].path, space["mean"] > 5) == (Path("runs/first").absolute(), True)
    assert Path("policy.gif").stat().st_size > 0
    for line in [" ".join(code_of(cell)) for _, cell in COMMANDS if code_of(cell)]:
        assert line.startswith("operant ")
        result = call(shlex.split(line)[1:])
        assert result.code == 0, f"{line}: {result.err}"


@pytest.mark.every(3)
@pytest.mark.parametrize("agent", sorted(AGENTS))
def test_the_settings_are_those_of_the_agents(agent: str) -> None:
    """One row at a time, since some exclude each other."""
    for row in flags(agent):
        words = ["train", agent, "--env.id", ENV.get(agent, "MountainCar-v0"), *row, "--dry-run"]
        result = call(words)
        assert result.code == 0, f"{' '.join(row)}: {result.err}"


def test_no_row_is_left_out() -> None:
    named = {row[0] for row in [*SETTINGS, *CALLBACKS] if row[2]}
    untested = [row[1] for row in [*SETTINGS, *CALLBACKS] if not row[2] and code_of(row[1])]
    assert len(named) > 40
    assert untested == []
