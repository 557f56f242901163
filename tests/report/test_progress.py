from __future__ import annotations

import io

import pytest
from rich.console import Console

from operant.report import progress
from operant.report.progress import ProgressView, clock, in_short


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def time_source(monkeypatch: pytest.MonkeyPatch) -> Clock:
    source = Clock()
    monkeypatch.setattr(progress, "time", source)
    return source


def view(terminal: bool, total: int = 1000, **options: int | bool) -> tuple[ProgressView, Console]:
    console = Console(
        file=io.StringIO(),
        force_terminal=terminal,
        color_system=None,
        width=80,
        legacy_windows=False,
    )
    return ProgressView(total, console=console, **options), console  # type: ignore[arg-type]  # as given


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_without_a_terminal_there_is_one_plain_line_every_few_seconds(time_source: Clock) -> None:
    shown, console = view(terminal=False)
    with shown:
        for step in range(0, 1000, 10):
            time_source.now += 0.125
            shown.update(step, {"rollout/ep_rew_mean": 12.34})
    lines = written(console).splitlines()
    assert len(lines) == 2  # twelve and a half seconds
    assert lines[0] == "390 / 1,000 steps · return 12.3 · 78 steps/s · 0:08 left"


def test_the_last_step_is_always_shown(time_source: Clock) -> None:
    shown, console = view(terminal=False)
    time_source.now += 1.0
    shown.update(1000)
    assert written(console) == "1,000 / 1,000 steps · 1,000 steps/s · 0:00 left\n"


def test_a_terminal_is_drawn_at_most_four_times_a_second(time_source: Clock) -> None:
    shown, console = view(terminal=True)
    with shown:
        for step in range(100):
            time_source.now += 0.01
            shown.update(step)
    assert written(console).count("steps/s") == pytest.approx(4, abs=1)


def test_the_bar_shows_return_evaluation_and_both_speeds(time_source: Clock) -> None:
    shown, console = view(terminal=True, frames_per_step=4)
    with shown:
        time_source.now += 2.0
        shown.update(500, {"rollout/ep_rew_mean": 20.0, "eval/mean_reward": 30.0})
    text = written(console)
    assert "return 20.0 · eval 30.0 · 250 steps/s · 1,000 frames/s" in text
    assert "50 %  500 / 1,000 steps  0:02 left" in text


def test_a_resumed_run_counts_only_its_own_steps_as_speed(time_source: Clock) -> None:
    shown, console = view(terminal=False, start=900)
    time_source.now += 10.0
    shown.update(950)
    assert "950 / 1,000 steps · 5 steps/s · 0:10 left" in written(console)


def test_quiet_writes_nothing(time_source: Clock) -> None:
    shown, console = view(terminal=True, quiet=True)
    with shown:
        time_source.now += 10.0
        shown.update(1000)
        shown.note("a warning")
    assert written(console) == ""


@pytest.mark.parametrize(("seconds", "text"), [(0.2, "0:00"), (65, "1:05"), (3_700, "1:01:40")])
def test_time_reads_like_a_clock(seconds: float, text: str) -> None:
    assert clock(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (-0.04, "-0.0400"),
        (0.0, "0.0"),
        (-0.0, "0.0"),
        (1.0, "1.00"),
        (0.7361, "0.736"),
        (9.999, "10.0"),
        (-12.34, "-12.3"),
        (1234.56, "1234.6"),
        (2.5e-7, "2.50e-07"),
        (float("nan"), "nan"),
    ],
)
def test_a_figure_keeps_three_digits(value: float, text: str) -> None:
    assert in_short(value) == text


def test_a_small_return_is_no_zero(time_source: Clock) -> None:
    shown, _ = view(terminal=False)
    time_source.now += 10.0
    shown.update(500, {"rollout/ep_rew_mean": -0.02})
    assert "return -0.0200" in shown.line(500)
