"""Scores: what is run, what is kept, and how it is summed up."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import rooted  # noqa: F401  # puts the root of the repository on the path

from benchmarks import score, score_page
from benchmarks.suites import CONTENDERS, SUITES, Task

TASK = Task("CartPole-v1", "ppo", 512)
MARKERS = "# Scores\n<!-- scores classic -->\nold\n<!-- end of scores classic -->\nafter\n"


def line(contender: str = "operant", seed: int = 1, **more: Any) -> dict[str, Any]:
    about = {**TASK._asdict(), "num_envs": 8, "contender": contender, "seed": seed}
    return about | (more or {"score": 100.0})


def test_a_suite_goes_on_where_it_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[Any] = []

    def run(key: Any, python: Path) -> dict[str, Any]:
        ran.append(key)
        return line(key[1], key[2])

    monkeypatch.setattr(score, "RESULTS", tmp_path)
    monkeypatch.setattr(score_page, "DOCS", tmp_path)
    (tmp_path / "scores.md").write_text(MARKERS)
    monkeypatch.setattr(score, "run", run)
    monkeypatch.setitem(SUITES, "classic", [TASK])
    score.append(tmp_path / "score-classic.jsonl", line(seed=1))
    for _ in range(2):
        score.main(["classic", "--seeds", "3", "--contenders", "operant"])
    assert [seed for _, _, seed in ran] == [2, 3]
    assert "100.0 (100.0 to 100.0)" in capsys.readouterr().out
    assert len((tmp_path / "score-classic.jsonl").read_text().splitlines()) == 3
    page = (tmp_path / "scores.md").read_text()
    assert "100.0 (100.0 to 100.0)" in page
    assert (tmp_path / "images" / "score-classic.png").stat().st_size > 1_000


def test_a_page_keeps_what_is_around_the_scores() -> None:
    page = score_page.filled(MARKERS, "classic", "new")
    assert page == MARKERS.replace("\nold\n", "\n\nnew\n\n")
    assert score_page.filled(page, "classic", "new") == page


@pytest.mark.parametrize("page", ["", "<!-- scores classic -->", MARKERS.replace("classic", "x")])
def test_a_page_without_markers_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match=r"scores.md has no lines <!-- scores classic -->"):
        score_page.filled(page, "classic", "new")


def test_a_contender_without_settings_has_a_dash_and_one_that_was_not_run_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(SUITES, "classic", [TASK])
    row = score_page.table("classic", [line(), line("zoo", skipped="none")]).splitlines()[-1]
    assert row == "| CartPole-v1 | ppo | 512 | 100.0 (one run) |  |  | – |"


def test_an_unknown_contender_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        score.main(["classic", "--contenders", "sb4"])
    assert f"expected some of {', '.join(CONTENDERS)}" in capsys.readouterr().err


def test_operants_side_trains_and_evaluates() -> None:
    found = score.run((TASK, "operant", 1), Path(sys.executable))
    assert json.loads(json.dumps(found)) == found
    assert (found["contender"], found["steps"], found["num_envs"]) == ("operant", 512, 8)
    assert 8 <= found["score"] <= 500
