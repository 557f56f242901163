"""The table in the documentation."""

from __future__ import annotations

from typing import Any

import pytest
import rooted  # noqa: F401  # finds the package

from benchmarks import table
from benchmarks.works import WORKS


def result(name: str, quick: bool = False, others: float = 0.0, **values: float) -> dict[str, Any]:
    """A result that was kept."""
    runs = {who: [{"value": value, "others": others}] for who, value in values.items()}
    fraction = values["operant"] / values["limit"] if "limit" in values else None
    machine = {"cpu": "EPYC", "cores": 2, "vectors": ["avx2"]}
    common = {"best_peer": "serial", "ratio": 1.85, "limit_fraction": fraction}
    common |= {"repeats": 3, "seconds": 20.0}
    return {"work": name, **common, "quick": quick, "machine": machine, "runs": runs}


def test_a_row_has_figures_ratio_aim_and_limit() -> None:
    found = result("ppo-pong", operant=600.0, sb3=250.0, limit=750.0)
    cells = [cell.strip() for cell in table.row("ppo-pong", found).strip("|").split("|")]
    assert cells == [
        "ppo-pong", "600 steps/s", "Stable-Baselines3 250", "×2.40", "×2", "750", "0.80"
    ]  # fmt: skip


def test_a_row_that_falls_short_says_so() -> None:
    found = result("ppo-pong", operant=490.0, sb3=250.0, limit=750.0)
    assert "×1.96 | ×2 **falls short** |" in table.row("ppo-pong", found)


def test_an_aim_of_its_own_is_compared_with_the_figure() -> None:
    held = {size: result("replay-memory", operant=size, sb3=2.7) for size in (0.35, 0.37)}
    rows = {size: table.row("replay-memory", found) for size, found in held.items()}
    assert ["falls short" in rows[size] for size in (0.35, 0.37)] == [False, True]


def test_a_work_may_be_compared_with_a_way_of_its_own() -> None:
    row = table.row("sampler-scaling", result("sampler-scaling", operant=1900.0))
    assert "| serial | ×1.85 | ×1.8 |" in row


def test_a_work_that_was_not_measured_has_a_row_with_its_aim() -> None:
    assert table.row("dqn-pong", None) == "| dqn-pong | not measured yet | | | ×1.8 | | |"


@pytest.mark.parametrize(
    ("quick", "others", "marked"), [(False, 0.05, False), (True, 0.0, True), (False, 0.4, True)]
)
def test_figures_that_cannot_be_trusted_are_marked(
    quick: bool, others: float, marked: bool
) -> None:
    found = result("startup", quick, others, operant=2.0, sb3=3.0)
    assert ("startup †" in table.row("startup", found)) is marked


@pytest.mark.parametrize(("key", "value"), [("repeats", 2), ("seconds", 10.0)])
def test_fewer_or_shorter_runs_than_usual_are_marked(key: str, value: float) -> None:
    found = result("ppo-pong", operant=600.0, sb3=250.0, limit=750.0)
    assert "†" not in table.row("ppo-pong", found)
    assert "ppo-pong †" in table.row("ppo-pong", found | {key: value})


@pytest.mark.parametrize(("limit", "verdict"), [(750.0, "0.80 |"), (800.0, "0.75 **falls short**")])
def test_less_than_four_fifths_of_the_limit_falls_short(limit: float, verdict: str) -> None:
    found = result("ppo-pong", operant=600.0, sb3=250.0, limit=limit)
    assert verdict in table.row("ppo-pong", found)


def test_every_aim_of_sampler_scaling_is_judged() -> None:
    found = result("sampler-scaling", operant=1900.0)
    reached = {"1 ms computing": 1.9, "10 ms computing": 1.79, "10 ms sleeping": 26.0}
    (section,) = table.further({"sampler-scaling": found | {"speedups": reached}})
    assert [line.count("falls short") for line in section.splitlines()] == [0, 0, 0, 1, 0]


def test_a_limit_that_was_passed_is_marked() -> None:
    found = result("ppo-pong", operant=600.0, sb3=250.0, limit=590.0)
    assert "ppo-pong †" in table.row("ppo-pong", found)


def test_the_machine_is_named_with_what_makes_it_fast() -> None:
    kept = {"startup": result("startup", operant=2.0, sb3=3.0)}
    assert table.notes(kept) == ["Measured on: EPYC, 2 cores, avx2."]


def test_rows_from_several_machines_say_which_is_whose() -> None:
    kept = {name: result(name, operant=2.0, sb3=3.0) for name in ("startup", "ppo-pong")}
    kept["ppo-pong"]["machine"]["cores"] = 8
    assert table.notes(kept) == [
        "Measured on: EPYC, 2 cores, avx2 (startup); EPYC, 8 cores, avx2 (ppo-pong)."
    ]


def test_the_page_keeps_what_stands_around_the_table() -> None:
    page = f"before\n{table.BEGIN}\nold\n{table.END}\nafter\n"
    kept = {"startup": result("startup", operant=2.0, sb3=3.0)}
    filled = table.filled(table.filled(page, kept), kept)
    assert (filled[:7], filled[-7:]) == ("before\n", "\nafter\n")
    assert (filled.count("| startup |"), filled.count("old")) == (1, 0)


def test_every_work_has_a_row() -> None:
    filled = table.filled(f"{table.BEGIN}{table.END}", {})
    assert [name for name in WORKS if f"| {name} |" not in filled] == []


def test_where_the_time_went_is_told_beside_the_limit() -> None:
    found = result("dqn-pong", operant=100.0, sb3=60.0, limit=150.0)
    found["runs"]["operant"][0]["spent"] = {"learning": 7000.0, "acting": 1200.0, "other": 50.0}
    found["runs"]["limit"][0]["spent"] = {"learning": 5000.0, "acting": 900.0}
    (section,) = table.times({"dqn-pong": found})
    assert section.splitlines() == [
        "| microseconds a step | | acting | learning | other |",
        "|---|---|---:|---:|---:|",
        "| dqn-pong | Operant | 1,200 | 7,000 | 50 |",
        "| dqn-pong | limit | 900 | 5,000 |  |",
    ]


def test_no_times_are_told_where_none_are_known() -> None:
    assert table.times({"startup": result("startup", operant=2.0, sb3=3.0)}) == []
