"""The sum tree against a list of weights."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operant.memory.sumtree import TOP, WIDTH, SumTree, tree_bytes

SIZES = [1, WIDTH - 1, WIDTH, WIDTH + 1, 300, TOP, TOP + 1, WIDTH * TOP + 1, 150_000]
WEIGHTS = st.sampled_from([0.0, 1e-12, 1e-3, 0.1, 1.0, 2.0, 7.0, 1e6])
ODD = st.sampled_from([0.0, 0.0, 1e-45, 1e-38, 1e-17, 0.1, 1 / 3, 1e17, 1e35])


def filled(size: int, seed: int = 0) -> SumTree:
    tree = SumTree(size)
    tree.set(np.arange(size), np.random.default_rng(seed).random(size))
    return tree


@settings(max_examples=60, deadline=None)
@given(data=st.data(), size=st.sampled_from(SIZES))
def test_it_is_a_list_of_weights_and_their_sums(data: st.DataObject, size: int) -> None:
    tree, model = SumTree(size), [0.0] * size
    for _ in range(data.draw(st.integers(1, 6))):
        pairs = data.draw(st.lists(st.tuples(st.integers(0, size - 1), WEIGHTS), min_size=1))
        places, weights = np.array(pairs).T
        tree.set(places.astype(int), weights)
        for place, weight in pairs:  # of a place given twice, the last weight counts
            model[place] = weight
    assert tree.weights[:size].tolist() == model
    for above, below in pairwise(tree.levels):
        sums = below.reshape(-1, WIDTH).sum(axis=1)
        assert above[: len(sums)] == pytest.approx(sums, rel=1e-15, abs=0)
        assert not above[len(sums) :].any()


@settings(max_examples=40, deadline=None)
@given(
    size=st.sampled_from(SIZES),
    chosen=st.lists(st.tuples(st.integers(0, 600), WEIGHTS), min_size=1, max_size=40),
)
def test_draws_that_are_evenly_spread_meet_each_place_as_often_as_it_weighs(
    size: int, chosen: list[tuple[int, float]]
) -> None:
    tree, count = SumTree(size), 5000
    for place, weight in chosen:
        tree.set(np.array([place % size]), np.array([weight]))
    if not tree.weights.any():
        return
    places, weights = tree.draw(np.full(count, 0.5))
    assert weights.tolist() == tree.weights[places].tolist()
    expected = tree.weights * (count / tree.weights.sum())
    assert np.abs(np.bincount(places, minlength=len(expected)) - expected).max() <= 1.01


@settings(max_examples=150, deadline=None)
@given(
    size=st.sampled_from([17, 300, TOP + 1, 150_000]),
    chosen=st.lists(st.tuples(st.integers(0, 10**6), ODD), min_size=1, max_size=60),
    uniform=st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=20),
)
def test_a_place_without_weight_is_never_drawn_whatever_the_rounding(
    size: int, chosen: list[tuple[int, float]], uniform: list[float]
) -> None:
    tree = SumTree(size)
    for place, weight in chosen:
        tree.set(np.array([place % size]), np.array([weight]))
    places, weights = tree.draw(np.array(uniform))
    assert (weights > 0).all() == tree.weights.any()
    assert places.max() < len(tree.weights)


def test_a_draw_that_rounding_leads_astray_is_mended() -> None:
    tree = SumTree(TOP + 1)
    tree.set(np.array([5, 20]), np.ones(2))
    tree.levels[0][0] = 1e9  # what no rounding does: far more than the numbers below
    places, weights = tree.draw(np.array([0.5]))
    assert (places.tolist(), weights.tolist()) == ([5], [1.0])  # the last below that sum


def test_each_stratum_is_drawn_once() -> None:
    tree = SumTree(64)
    tree.set(np.arange(64), np.ones(64))
    places, _ = tree.draw(np.random.default_rng(0).random(64))
    assert sorted(places) == list(range(64))


@pytest.mark.parametrize(("size", "levels"), [(1000, 2), (10**5, 3), (10**6, 4), (10**7, 6)])
def test_levels_grow_with_the_logarithm_of_the_size(size: int, levels: int) -> None:
    tree = SumTree(size)
    assert len(tree.levels) == levels
    assert sum(x.nbytes for x in tree.levels) == pytest.approx(tree_bytes(size), rel=0.02)


def test_a_restored_tree_draws_the_same() -> None:
    tree, other = filled(70_000), filled(70_000, seed=1)
    tree.set(np.arange(50), np.full(50, 0.25))
    other.load_state_dict(tree.state_dict())
    uniform = np.random.default_rng(2).random(500)
    assert tree.draw(uniform)[0].tolist() == other.draw(uniform)[0].tolist()
    other.set(np.arange(9), np.zeros(9))
    assert tree.weights[:9].tolist() == [0.25] * 9


def test_sums_follow_from_the_weights_in_whatever_order_those_came() -> None:
    tree, other = SumTree(70_000), SumTree(70_000)
    order = np.random.default_rng(3).permutation(70_000)
    weights = filled(70_000).weights
    for some in np.array_split(order, 90):
        tree.set(some, weights[some])
    other.set(np.arange(70_000), weights[:70_000])
    assert all((a == b).all() for a, b in zip(tree.levels, other.levels, strict=True))


def test_it_refuses_weights_for_other_places() -> None:
    with pytest.raises(ValueError, match=r"\(3,\) places, but \(4,\) weights"):
        SumTree(64).set(np.arange(3), np.ones(4))
