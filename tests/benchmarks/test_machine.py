"""Who uses the cores."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
import rooted  # noqa: F401  # finds the package

from benchmarks import machine


def test_the_share_in_use_is_what_was_not_idle() -> None:
    assert machine.used((1000, 600), (1200, 650)) == pytest.approx(0.75)


def test_no_time_passed_means_nothing_in_use() -> None:
    assert machine.used((1000, 600), (1000, 600)) == 0.0


def test_waiting_for_input_counts_as_idle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  10 20 30 40 50 6 7 8 0 0\ncpu0 1 2 3 4\n")
    monkeypatch.setattr(machine, "STAT", stat)
    assert machine.ticks() == (171, 90)


def test_a_system_that_does_not_tell_counts_as_quiet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "STAT", tmp_path / "none")
    assert machine.busy_share(seconds=0.0) == 0.0


def test_what_our_children_use_is_not_counted_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(machine, "ticks", lambda: (0, 0))
    monkeypatch.setattr(machine, "children", lambda: 5.0)
    others = machine.Others()
    monkeypatch.setattr(time, "monotonic", lambda: others.began + 10.0)
    monkeypatch.setattr(machine, "ticks", lambda: (2000, 800))  # 12 of 20 core-seconds in use
    monkeypatch.setattr(machine, "children", lambda: 15.0)  # 10 of them ours
    assert others.share() == pytest.approx(0.1)


def test_waiting_ends_when_patience_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(machine, "busy_share", lambda: 0.9)
    machine.wait_until_quiet(patience=0.02)
    assert "not quiet" in capsys.readouterr().err


def test_a_quiet_machine_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(machine, "busy_share", lambda: 0.05)
    machine.wait_until_quiet(patience=0.0)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("flags", "has"), [("fpu avx2", False), ("avx512_bf16 avx2", True)])
def test_bf16_is_what_the_processor_says(
    flags: str, has: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"model name\t: A\nflags\t\t: {flags}\n")
    monkeypatch.setattr(machine, "CPUINFO", cpuinfo)
    assert machine.has_bf16() is has
    assert machine.described()["cpu"] == "A"


def test_the_machine_is_told_without_a_date() -> None:
    assert set(machine.described()) == {"cpu", "cores", "vectors", "system", "python"}
