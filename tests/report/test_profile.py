"""Where the time of a run went."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from running import AGENTS, COMMON, call, only_run

from operant.core.errors import UsageError
from operant.report.profile import plot_profile, profile, table

FAST = {"acting": 0.1, "stepping": 0.2, "storing": 0.05, "learning": 0.6}
SLOW = {"acting": 0.2, "stepping": 0.1, "storing": 0.1, "learning": 0.6}


def written(run: Path, *epochs: tuple[int, float, dict[str, float]]) -> Path:
    """A run with such lines in its log: steps, steps a second, and shares of the time."""
    lines: list[dict[str, Any]] = [
        {"step": step, "time/fps": fps} | {f"time/share_{k}": v for k, v in shares.items()}
        for step, fps, shares in epochs
    ]
    (run / "metrics.jsonl").write_text("")
    (run / "timing.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return run


def test_seconds_are_shares_of_each_epochs_time(tmp_path: Path) -> None:
    found = profile(written(tmp_path, (1000, 1000.0, FAST), (3000, 500.0, SLOW)))
    seconds = {"acting": 0.1 + 0.8, "stepping": 0.2 + 0.4, "moving": 0.05 + 0.4, "learning": 3.0}
    assert found.seconds == pytest.approx(seconds | {"other": 0.05})
    assert found.pace == pytest.approx(3000 / 5)


def test_the_limit_is_the_work_alone_at_its_best(tmp_path: Path) -> None:
    found = profile(written(tmp_path, (1000, 1000.0, FAST), (3000, 500.0, SLOW)))
    assert found.limit == pytest.approx(1000 / (0.1 + 0.2 + 0.6))
    assert "600 steps/s, 0.54 of the limit: 1,111 steps/s" in table(found)


def test_where_each_side_waits_for_the_other_the_longer_one_is_the_limit(tmp_path: Path) -> None:
    shares = {"acting": 0.2, "stepping": 0.1, "learning": 0.7, "waiting": 0.2, "idling": 0.1}
    assert profile(written(tmp_path, (1000, 700.0, shares))).limit == pytest.approx(1000)


def test_where_only_the_learner_waits_its_work_comes_on_top(tmp_path: Path) -> None:
    shares = {"acting": 0.2, "stepping": 0.1, "learning": 0.5, "waiting": 0.2}
    assert profile(written(tmp_path, (1000, 800.0, shares))).limit == pytest.approx(1000)


def test_a_run_without_a_line_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing to profile"):
        profile(written(tmp_path))


def test_a_profile_is_drawn(tmp_path: Path) -> None:
    plot_profile(profile(written(tmp_path, (1000, 1000.0, FAST))), tmp_path / "profile.png")
    assert (tmp_path / "profile.png").read_bytes().startswith(b"\x89PNG")


def test_collecting_beside_learning_is_profiled_too(tmp_path: Path) -> None:
    result = call(f"{AGENTS['ppo']} {COMMON} --sampler async --profile", tmp_path)
    assert (result.code, result.err) == (0, "")
    assert "idling" in result.out or "waiting" in result.out


def test_training_tells_where_its_time_went(tmp_path: Path) -> None:
    result = call(f"{AGENTS['a2c']} {COMMON} --profile", tmp_path)
    assert (result.code, result.err) == (0, "")
    assert all(f"\n{name} " in result.out for name in ("acting", "stepping", "moving", "learning"))
    assert "of the limit" in result.out
    assert (only_run(tmp_path) / "profile.png").stat().st_size > 5000
