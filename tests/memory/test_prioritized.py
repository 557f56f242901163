"""Prioritized replay against a list of everything that happened, and by hand-worked numbers."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import APART, Streams
from windows import check_same, check_window, fill, next_chunk, part, starts

from operant.core.errors import TrainingFault, UsageError
from operant.core.schedule import Schedule
from operant.memory.prioritized import MIN_ERROR, PrioritizedReplay
from operant.memory.rollout import RolloutCache

HALF = Schedule(0.5)


def replay(
    size: int, alpha: float = 1.0, beta: Schedule = HALF, seed: int = 0
) -> PrioritizedReplay:
    return PrioritizedReplay(size, 1, seed, alpha, beta)


def plain(size: int = 60, steps: int = 8, alpha: float = 1.0) -> PrioritizedReplay:
    """A replay of `steps` steps of one environment whose episode does not end."""
    return fill(replay(size, alpha), Streams(1, False, chance=0.0), [steps])


def begins(memory: PrioritizedReplay, batch_size: int, length: int = 1) -> list[int]:
    found = memory.sample(batch_size, length).experience.observation["o"][0]
    return [int(seen) for seen in found.flatten()]


@settings(max_examples=80, deadline=None)
@given(
    streams=st.builds(
        Streams,
        st.integers(1, 3),
        st.booleans(),
        st.integers(0, 99),
        st.sampled_from([0.0, 0.1, 0.4, 1.0]),
    ),
    chunks=st.lists(st.tuples(st.integers(1, 5), st.integers(1, 4)), min_size=1, max_size=9),
    spare=st.integers(0, 20),
)
def test_every_whole_window_and_no_other_can_be_drawn(
    streams: Streams, chunks: list[tuple[int, int]], spare: int
) -> None:
    size = (2 * max(steps for steps, _ in chunks) + 1) * len(streams.envs) + spare
    memory = replay(size)
    for steps, length in chunks:
        memory.store(next_chunk(streams, steps))
        possible = starts(streams, memory, length)
        if not possible:
            with pytest.raises(UsageError, match=f"holds no {length} consecutive steps"):
                memory.sample(4, length)
            continue
        drawn = memory.sample(30, length)
        for i in range(30):
            check_window(streams, drawn.experience[:, i], length)
        weighed = np.flatnonzero(memory.tree.weights)
        found = memory.windows(weighed, length).observation["o"][0].flatten().tolist()
        assert sorted(found) == sorted(possible)
        memory.prioritize(drawn.place, torch.arange(30.0))


def test_windows_are_drawn_in_proportion_to_their_priority() -> None:
    memory, draws = plain(steps=4, alpha=0.5), 20_000
    memory.prioritize(np.arange(4), torch.tensor([1.0, 4.0, 9.0, 16.0]))
    drawn = Counter(begins(memory, draws))
    assert [drawn[k] / draws for k in range(4)] == pytest.approx([0.1, 0.2, 0.3, 0.4], abs=0.01)


def test_alpha_zero_draws_all_alike() -> None:
    memory = plain(steps=5, alpha=0.0)
    memory.prioritize(np.arange(5), torch.tensor([0.0, 1.0, 9.0, 100.0, 1e6]))
    drawn = Counter(begins(memory, 5000))
    assert [drawn[k] for k in range(5)] == [1000] * 5  # from strata, so exactly


def test_weights_make_up_for_the_priorities_and_the_largest_is_one() -> None:
    memory = plain(steps=3)
    memory.prioritize(np.arange(3), torch.tensor([1.0, 4.0, 16.0]) - MIN_ERROR)
    drawn = memory.sample(200)
    assert drawn.weight is not None
    told = dict(zip(drawn.place.tolist(), drawn.weight.tolist(), strict=True))
    assert told == pytest.approx({0: 1.0, 1: 0.5, 2: 0.25})


def test_beta_follows_its_schedule_over_the_steps_stored() -> None:
    memory = fill(replay(60, beta=Schedule(0.0, 1.0, 16)), Streams(1, False, chance=0.0), [8])
    memory.prioritize(np.arange(8), torch.tensor([4.0] * 7 + [1.0]) - MIN_ERROR)
    weight = memory.sample(400).weight
    assert weight is not None
    assert weight.unique().tolist() == pytest.approx([0.5, 1.0])  # 4 ** -(8 / 16)


def test_what_is_new_has_the_highest_priority_so_far() -> None:
    streams = Streams(1, False, chance=0.0)
    memory = fill(replay(60), streams, [4])
    memory.prioritize(np.arange(4), torch.tensor([1.0, 7.0, 1.0, 1.0]) - MIN_ERROR)
    memory.prioritize(np.array([1]), torch.tensor([2.0]) - MIN_ERROR)
    fill(memory, streams, [2])
    assert memory.tree.weights[:7].tolist() == pytest.approx([1, 2, 1, 1, 7, 7, 0])


def test_an_error_of_zero_can_still_be_drawn() -> None:
    memory = plain(steps=3)
    memory.prioritize(np.arange(3), torch.zeros(3))
    assert set(begins(memory, 50)) == {0, 1, 2}


def test_an_error_counts_by_its_size() -> None:
    memory = plain(steps=2)
    memory.prioritize(np.arange(2), torch.tensor([-3.0, 3.0]))
    assert memory.tree.weights[:2].tolist() == pytest.approx([3, 3])


@pytest.mark.parametrize("again", [False, True])
def test_what_was_overwritten_since_it_was_drawn_is_left_alone(again: bool) -> None:
    streams = Streams(1, False, chance=0.0)
    memory = fill(replay(7), streams, [3, 3])
    place = memory.sample(60).place
    assert set(place) == set(range(6))
    fill(memory, streams, [3])  # the row at the cursor is one of those
    if again:
        memory.sample(2)
    memory.prioritize(place, torch.full((60,), 5.0))
    assert memory.tree.weights[memory.cursor].tolist() == [0.0]
    assert set(begins(memory, 200)) == set(range(2, 9))


@pytest.mark.parametrize("place", [-1, 64, 10**9])
def test_a_place_that_was_never_drawn_is_refused(place: int) -> None:
    memory = plain()
    with pytest.raises(UsageError, match=f"place = {place}: expected what was drawn, from 0 to 63"):
        memory.prioritize(np.array([0, place]), torch.ones(2))
    with pytest.raises(UsageError, match=r"place has shape \(2,\), error \(3,\)"):
        memory.prioritize(np.array([0, 1]), torch.ones(3))


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_an_error_that_is_no_number_is_refused(bad: float) -> None:
    memory = plain(steps=2)
    with pytest.raises(TrainingFault, match=f"error of a sample is {bad}"):
        memory.prioritize(np.arange(2), torch.tensor([1.0, bad]))
    assert begins(memory, 9)


def test_windows_of_another_length_are_whole_too() -> None:
    memory = plain(steps=6)
    assert set(begins(memory, 60, 4)) == {0, 1, 2}
    assert set(begins(memory, 60, 1)) == set(range(6))
    assert set(begins(memory, 60, 6)) == {0}


def test_a_sample_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="holds no 1 consecutive steps"):
        replay(20).sample(1)


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("chunks", [2, 40])
def test_a_restored_replay_draws_the_same_from_then_on(waits: bool, chunks: int) -> None:
    streams = Streams(3, waits)
    original = fill(replay(60, 0.6, seed=1), streams, [2] * chunks)
    drawn = original.sample(9, 2)
    original.prioritize(drawn.place, torch.arange(9.0))
    other = replay(60, 0.6, seed=2)
    other.load_state_dict(original.state_dict())
    whole = streams.fill(RolloutCache(4))
    for memory in (original, other):
        memory.store(part(whole, 0, 4))
        memory.prioritize(memory.sample(30, 2).place, torch.arange(30.0))
    check_same(original.sample(50, 2), other.sample(50, 2))


def test_how_the_steps_were_cut_into_chunks_leaves_no_trace() -> None:
    drawn = []
    for lengths in ([24], [1] * 24, [5, 2, 7, 10]):
        memory = fill(replay(150, seed=3), Streams(2, False, chance=0.2), lengths)
        drawn.append(memory.sample(100, 2))
    check_same(drawn[0], drawn[1])
    check_same(drawn[0], drawn[2])


def test_environments_that_end_more_often_are_not_drawn_more_often() -> None:
    streams = Streams(2, waits=False)
    streams.envs[1].chance = 1.0  # each step takes two rows here
    memory = fill(replay(400), streams, [5] * 9)
    columns = np.array(begins(memory, 9000)) // APART
    assert columns.mean() == pytest.approx(0.5, abs=0.01)
