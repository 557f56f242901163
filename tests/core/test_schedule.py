"""Numbers that change with time, as values that can be written down."""

from __future__ import annotations

import pytest

from operant.config.values import parse_schedule
from operant.core.schedule import Schedule


@pytest.mark.parametrize("step", [0, 5, 10**9])
def test_a_single_number_is_constant(step: int) -> None:
    assert Schedule(3e-4)(step) == 3e-4


@pytest.mark.parametrize(("step", "value"), [(0, 1.0), (25, 0.75), (50, 0.5), (100, 0), (999, 0)])
def test_a_line_goes_from_start_to_end_and_stays_there(step: int, value: float) -> None:
    assert Schedule(1.0, 0.0, 100)(step) == value


def test_a_line_may_rise() -> None:
    assert Schedule(0.25, 0.75, 4)(1) == 0.375


@pytest.mark.parametrize(
    ("text", "schedule"),
    [
        ("3e-4", Schedule(3e-4)),
        ("1", Schedule(1.0)),
        ("linear(1e-3, 0, 100_000)", Schedule(1e-3, 0.0, 100_000)),
        (" linear( 1 ,0.04,1.2e4 ) ", Schedule(1.0, 0.04, 12_000)),
        ("linear(1e-3, 0)", Schedule(1e-3, 0.0)),
        ("linear(1, 0.05, 12.5 %)", Schedule(1.0, 0.05, percent=12.5)),
        ("linear(1, 0, 10% of 2_000)", Schedule(1.0, 0.0, percent=10, run=2_000)),
    ],
)
def test_parse_reads_numbers_and_lines(text: str, schedule: Schedule) -> None:
    assert parse_schedule(text) == schedule


@pytest.mark.parametrize(
    "schedule",
    [
        Schedule(0.1),
        Schedule(1),
        Schedule(1e-3, 1 / 3, 12_345),
        Schedule(1e-3, 0.0),
        Schedule(1.0, 0.05, percent=100 / 3),
        Schedule(1.0, 0.05, percent=10, run=20_000),
    ],
)
def test_what_is_written_is_read_again(schedule: Schedule) -> None:
    assert parse_schedule(str(schedule)) == schedule


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("fast", "'fast'"),
        ("", "''"),
        ("linear(1, 0, 10, 3)", "linear"),
        ("linear(1, x, 10)", "'x'"),
        ("linear(1, 0, inf)", "infinity"),
        ("linear(1, 0, nan)", "NaN"),
        ("linear(1, 0, 0)", "needs `over`"),
        ("linear(1, 0, -5)", "needs `over`"),
        ("linear(1, 0, 0%)", "not 0.0"),
        ("linear(1, 0, 101%)", "not 101.0"),
        ("linear(1, 0, 10% of 0)", "not 0"),
        ("nan", "not nan"),
        ("inf", "not inf"),
        ("-1e-3", "not -0.001"),
        ("linear(1, -1, 10)", "not -1.0"),
    ],
)
def test_parse_says_what_it_expected_and_what_is_wrong(text: str, part: str) -> None:
    with pytest.raises(ValueError, match="expected a number or linear") as raised:
        parse_schedule(text)
    assert part in str(raised.value)


@pytest.mark.parametrize(("end", "over"), [(None, 10), (0.5, -1)])
def test_an_end_and_its_step_come_together(end: float | None, over: int) -> None:
    with pytest.raises(ValueError, match="needs `over`"):
        Schedule(1.0, end, over)


@pytest.mark.parametrize(("step", "value"), [(0, 1.0), (1_000, 0.525), (9_000, 0.05)])
def test_a_share_of_a_run_becomes_steps_when_its_length_is_known(step: int, value: float) -> None:
    schedule = Schedule(1.0, 0.05, percent=10).of_run(20_000)
    assert (schedule.over, str(schedule)) == (2_000, "linear(1.0, 0.05, 10% of 20000)")
    assert schedule(step) == pytest.approx(value)
    assert schedule.of_run(500).over == 50


def test_a_line_without_steps_ends_with_the_run_and_one_with_steps_where_it_says() -> None:
    whole, given = Schedule(1e-3, 0.0), Schedule(1e-3, 0.0, 100_000)
    steps = range(0, 130_000, 777)
    assert [whole.of_run(100_000)(i) for i in steps] == [given(i) for i in steps]
    assert whole.of_run(130_000)(129_999) > 0 == whole.of_run(130_000)(130_000)
    assert given.of_run(130_000) is given
    assert Schedule(0.5).of_run(9) == Schedule(0.5)


def test_a_share_of_an_unknown_length_says_what_is_missing() -> None:
    with pytest.raises(ValueError, match=r"10%\) .* Schedule\(1.0, 0.0, 10_000\)"):
        Schedule(1.0, 0.0, percent=10)(5)
