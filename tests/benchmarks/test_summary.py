"""Medians, ratios and the closing line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import rooted  # noqa: F401  # finds the package

from benchmarks import summary
from benchmarks.works import WORKS


def runs(**values: list[float]) -> dict[str, list[dict[str, Any]]]:
    """Runs that told these figures."""
    return {name: [{"value": v, "others": 0.0} for v in found] for name, found in values.items()}


def test_the_closing_line_compares_medians() -> None:
    found = runs(operant=[10.0, 30.0, 20.0], sb3=[5.0, 8.0, 2.0], limit=[40.0, 40.0, 99.0])
    assert summary.closing("ppo-cartpole", found) == {
        "work": "ppo-cartpole",
        "sps": 20.0,
        "best_peer": "sb3",
        "ratio": 4.0,
        "limit_fraction": 0.5,
    }


def test_the_best_peer_is_the_fastest() -> None:
    found = runs(operant=[10.0], sb3=[5.0], tianshou=[8.0], limit=[20.0])
    closing = summary.closing("ppo-pong", found)
    assert (closing["best_peer"], closing["ratio"]) == ("tianshou", 1.25)


def test_where_less_is_better_the_ratio_turns_round() -> None:
    found = runs(operant=[0.5], sb3=[2.5], limit=[0.25])
    closing = summary.closing("replay-memory", found)
    assert (closing["ratio"], closing["limit_fraction"]) == (5.0, 0.5)


def test_without_peers_and_limit_there_is_no_ratio() -> None:
    closing = summary.closing("prioritized-replay", runs(operant=[7.0]))
    assert (closing["best_peer"], closing["ratio"], closing["limit_fraction"]) == (None, None, None)


def test_a_job_may_say_what_it_is_compared_with() -> None:
    told = {"best_peer": "serial", "ratio": 1.9, "limit_fraction": 0.95}
    found = {"operant": [{"value": 900.0, "speedups": {"1 ms computing": 1.9}, **told}]}
    closing = summary.closing("sampler-scaling", found)
    assert told.items() <= closing.items()
    assert closing["speedups"] == {"1 ms computing": 1.9}


def test_the_steps_a_job_tells_beside_its_figure_are_its_sps() -> None:
    found = {"operant": [{"value": 0.4, "gib": 0.4, "sps": n} for n in (1.0, 3.0, 2.0)]}
    closing = summary.closing("replay-memory", found)
    assert (closing["sps"], closing["gib"]) == (2.0, 0.4)


def test_figures_by_name_have_medians_by_name() -> None:
    found = [{"x": {"a": 1.0, "b": 9.0}}, {"x": {"a": 3.0, "b": 7.0}}, {"x": {"a": 2.0, "b": 8.0}}]
    assert summary.middle(found, "x") == {"a": 2.0, "b": 8.0}


def test_the_table_has_median_range_and_ratio() -> None:
    lines = summary.table("ppo-pong", runs(operant=[200.0], sb3=[90.0, 110.0, 100.0])).splitlines()
    assert "100 steps/s  (90 to 110)  ×2.00" in lines[1]


@pytest.mark.parametrize(
    ("value", "shown"), [(12345.6, "12,346"), (99.94, "99.9"), (0.3286, "0.329")]
)
def test_figures_keep_three_digits(value: float, shown: str) -> None:
    assert summary.shown(value) == shown


def test_what_is_kept_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary, "HOME", tmp_path / "results")
    path = summary.write("startup", {"sps": 1.5})
    assert json.loads(path.read_text()) == summary.read("startup") == {"sps": 1.5}


def test_what_was_never_measured_reads_as_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summary, "HOME", tmp_path)
    assert [summary.read(name) for name in WORKS] == [None] * len(WORKS)
