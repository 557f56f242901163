"""Interquartile means and bootstrap intervals: by hand, and as SciPy has them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from operant.report.statistics import interval, iqm, iqm_along


def bounds_of(*scores: float) -> list[float]:
    """The interval of these scores; empty if there is none."""
    return [float(bound) for bound in interval(np.array(scores)) or ()]


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([5.0], 5.0),
        ([1.0, 3.0], 2.0),
        ([0.0, 6.0, 100.0], (0.25 * 0 + 6 + 0.25 * 100) / 1.5),
        ([999.0, 1.0, 3.0, -9.0], 2.0),
        ([0.0, 4.0, 5.0, 9.0, 900.0], (0.75 * 4 + 5 + 0.75 * 9) / 2.5),
    ],
)
def test_the_interquartile_mean_leaves_the_outer_quarters_out(
    scores: list[float], expected: float
) -> None:
    assert iqm(scores) == pytest.approx(expected)


def test_with_whole_quarters_it_is_the_trimmed_mean() -> None:
    values = np.random.default_rng(1).normal(size=(8, 5))
    np.testing.assert_allclose(iqm_along(values), stats.trim_mean(values, 0.25))
    np.testing.assert_allclose(iqm_along(values.T, axis=1), iqm_along(values))


def test_the_interval_of_two_seeds_is_between_them() -> None:
    assert bounds_of(0.0, 10.0) == [0.0, 10.0]  # of 0, 5, 5 and 10, equally often


def test_the_bounds_are_where_resamples_of_four_seeds_say() -> None:
    # Of the values 0, 0, 0, 8 the number of eights in a resample is binomial(4, 1/4). The middle
    # two are 0 up to one eight (74 %), 4 with two (95 %), and 8 with three or four (5 %).
    assert bounds_of(0.0, 8.0, 0.0, 0.0) == [0.0, 8.0]
    # Of seven zeros and one eight, binomial(8, 1/8): the middle four have an eight in them from
    # three on, with 7 %, and two of them from four on, with 1.1 %.
    assert bounds_of(8.0, *[0.0] * 7) == [0.0, 2.0]


def test_scipy_finds_the_same_interval_but_for_its_random_numbers() -> None:
    values = np.random.default_rng(3).gamma(2.0, size=(9, 4))
    found = stats.bootstrap(
        (values,), iqm_along, axis=0, n_resamples=20_000, method="percentile", rng=0
    ).confidence_interval
    bounds = interval(values)
    assert bounds is not None
    wide = found.high - found.low
    assert (np.abs(np.array(bounds) - np.array(found)) < 0.06 * wide).all()


def test_runs_are_drawn_whole() -> None:
    values = np.array([[0.0, 1.0], [10.0, 11.0], [2.0, 3.0]])  # one above the other throughout
    bounds = interval(values)
    assert bounds is not None
    np.testing.assert_allclose([b[1] - b[0] for b in bounds], 1.0)


def test_one_run_has_no_interval_and_that_of_equal_ones_is_a_point() -> None:
    assert bounds_of(3.0) == []
    assert bounds_of(*[3.0] * 5) == [3.0, 3.0]
