"""Figures over seeds: the interquartile mean and its bootstrap interval.

As Agarwal et al. recommend, "Deep Reinforcement Learning at the Edge of the Statistical Precipice",
NeurIPS 2021: few seeds, so a mean that one of them cannot move far, and an interval beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]
CONFIDENCE = 0.95
RESAMPLES = 2_000
PARTS = 20  # in which resamples are taken, so that long curves of many runs fit into memory


def iqm(scores: Sequence[float] | Array) -> float:
    """Interquartile mean: of the middle half of the scores, by weight where it cuts one."""
    return float(iqm_along(np.asarray(scores, float)))


def iqm_along(values: Array, axis: int = 0) -> Array:
    """The interquartile mean of the numbers along one axis."""
    ordered = np.moveaxis(np.sort(values, axis=axis), axis, -1)
    count = ordered.shape[-1]
    place, quarter = np.arange(count), count / 4
    weight = np.clip(place + 1 - quarter, 0, 1) * np.clip(count - quarter - place, 0, 1)
    found: Array = ordered @ (weight / weight.sum())
    return found


def interval(values: Array) -> tuple[Array, Array] | None:
    """Bounds of the 95 % percentile bootstrap interval of the interquartile mean over `values[i]`.

    Whole runs are drawn with replacement, the same ones for every point of a curve. The random
    numbers are always the same, so that the same runs have the same interval. One run has none.

    By hand, as `scipy.stats` takes a second to import; a test compares the two.
    """
    count = len(values)
    if count < 2:
        return None
    draws = np.random.default_rng(0).integers(count, size=(RESAMPLES, count))
    parts = [iqm_along(values[rows], axis=1) for rows in np.array_split(draws, PARTS)]
    outside = (1 - CONFIDENCE) / 2
    low, high = np.quantile(np.concatenate(parts), (outside, 1 - outside), axis=0)
    return low, high
