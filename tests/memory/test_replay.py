"""The replay against a list of everything that happened."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import APART, Streams
from windows import check_window, fill, part, starts

from operant.core import tree
from operant.core.errors import UsageError
from operant.memory.replay import ExperienceReplay
from operant.memory.rollout import RolloutCache

MODES = pytest.mark.parametrize("waits", [False, True], ids=["same-step", "next-step"])


@settings(max_examples=60, deadline=None)
@given(
    streams=st.builds(
        Streams,
        st.integers(1, 3),
        st.booleans(),
        st.integers(0, 99),
        st.sampled_from([0.0, 0.1, 0.4, 1.0]),
    ),
    lengths=st.lists(st.integers(1, 5), min_size=1, max_size=9),
    spare=st.integers(0, 20),
    length=st.integers(1, 4),
)
def test_every_window_is_a_run_of_what_happened(
    streams: Streams, lengths: list[int], spare: int, length: int
) -> None:
    size = (2 * max(lengths) + 1) * len(streams.envs) + spare
    replay = fill(ExperienceReplay(size, 1, seed=0), streams, lengths)
    possible = starts(streams, replay, length)
    assert replay.held() == len(starts(streams, replay, 1))
    assert len(replay.starts(length)) == len(possible)
    if not possible:
        with pytest.raises(UsageError, match=f"holds no {length} consecutive steps"):
            replay.sample(4, length)
        return
    listed = replay.windows(replay.starts(length), length).observation["o"][0]
    assert sorted(listed.flatten().tolist()) == sorted(possible)
    batch = replay.sample(40, length).experience
    assert {x.item() for x in batch.observation["o"][0]} <= set(possible)
    for i in range(40):
        check_window(streams, batch[:, i], length)


@MODES
@pytest.mark.parametrize("length", [1, 3])
def test_every_possible_window_is_drawn_equally_often(waits: bool, length: int) -> None:
    streams, draws = Streams(2, waits), 40_000
    replay = fill(ExperienceReplay(40, 1, seed=1), streams, [5] * 9)
    possible = starts(streams, replay, length)
    drawn = Counter(replay.sample(draws, length).experience.observation["o"][0].flatten().tolist())
    assert sorted(drawn) == sorted(possible)
    expected = draws / len(possible)
    deviation = sum((n - expected) ** 2 / expected for n in drawn.values())
    freedom = len(possible) - 1
    assert abs(deviation - freedom) < 5 * np.sqrt(2 * freedom)  # chi-square: mean k, variance 2k


def test_an_environment_whose_steps_take_more_rows_is_not_drawn_more_often() -> None:
    streams = Streams(2, waits=False)
    streams.envs[1].chance = 1.0  # each step takes two rows here
    replay = fill(ExperienceReplay(400, 1, seed=1), streams, [5] * 9)
    columns = replay.sample(20_000).experience.observation["o"][0] // APART
    assert columns.double().mean().item() == pytest.approx(0.5, abs=0.02)


def test_the_last_size_steps_are_held_and_older_ones_are_gone() -> None:
    streams = Streams(2, waits=False, chance=0.0)
    replay = fill(ExperienceReplay(10, 1, seed=0), streams, [2] * 10)
    drawn = set(replay.sample(500).experience.observation["o"][0].flatten().tolist())
    assert drawn == {b * APART + k for b in range(2) for k in range(15, 20)}


def test_a_window_may_reach_the_newest_step_but_not_the_row_after_it() -> None:
    streams = Streams(1, waits=False, chance=0.0)
    replay = fill(ExperienceReplay(100, 1, seed=0), streams, [6])
    batch = replay.sample(300, length=4).experience
    assert set(batch.observation["o"][0].flatten().tolist()) == {0, 1, 2}
    assert batch.observation["o"][-1].max().item() == 6


def test_a_window_crosses_an_episode_by_one_row_that_is_not_valid() -> None:
    streams = Streams(1, waits=False, chance=1.0)
    batch = fill(ExperienceReplay(50, 1, seed=0), streams, [4]).sample(100, length=3).experience
    assert batch.valid[:, 0].tolist() == [True, False, True]
    assert batch.first.squeeze(-1)[:, 0].tolist() == [True, False, True, False]
    assert batch.ended[:, 0].tolist() == [True, False, True]


def test_a_sample_has_the_hidden_state_of_its_first_row_only() -> None:
    batch = (
        fill(ExperienceReplay(50, 1, seed=0), Streams(2, True), [9]).sample(5, length=3).experience
    )
    assert batch.hidden_state["h"].shape == (1, 5, 1)
    assert batch.observation["o"].shape == (4, 5, 1)
    assert batch.reward.shape == (3, 5)


def test_values_keep_their_types() -> None:
    batch = fill(ExperienceReplay(50, 1, seed=0), Streams(2, True), [9]).sample(5).experience
    kinds = {path: str(x.dtype).removeprefix("torch.") for path, x in tree.leaves(batch)}
    assert kinds["observation.o"] == "int64"
    assert kinds["hidden_state.h"] == "float64"
    assert (kinds["reward"], kinds["terminated"], kinds["valid"]) == ("float32", "bool", "bool")


def test_a_sample_is_a_copy() -> None:
    streams = Streams(1, waits=False, chance=0.0)
    replay = fill(ExperienceReplay(7, 1, seed=0), streams, [3])
    batch = replay.sample(20).experience
    before = batch.observation["o"].clone()
    fill(replay, streams, [3, 3])
    assert batch.observation["o"].equal(before)


@MODES
@pytest.mark.parametrize("before", [3, 40])
def test_a_restored_replay_gives_the_same_samples_from_then_on(waits: bool, before: int) -> None:
    streams = Streams(3, waits)
    original = fill(ExperienceReplay(60, 7, seed=1), streams, [2] * before)
    original.sample(9)
    other = ExperienceReplay(60, 7, seed=2)
    other.load_state_dict(original.state_dict())
    assert (other.stored, other.ready()) == (original.stored, original.ready())
    whole = streams.fill(RolloutCache(4))
    for replay in (original, other):
        replay.store(part(whole, 0, 4))
    for (path, x), (_, y) in zip(
        tree.leaves(original.sample(50, 3).experience),
        tree.leaves(other.sample(50, 3).experience),
        strict=True,
    ):
        assert x.equal(y), path


def test_the_state_holds_only_rows_that_were_written() -> None:
    replay = fill(ExperienceReplay(1000, 1, seed=0), Streams(2, True), [5, 5])
    assert len(replay.state_dict()["rows"]["reward"]) == 11


def test_the_state_of_an_empty_replay_restores_its_generator() -> None:
    one, two = ExperienceReplay(50, 1, seed=1), ExperienceReplay(50, 1, seed=2)
    two.load_state_dict(one.state_dict())
    samples = [
        fill(r, Streams(1, True), [9]).sample(20).experience.reward.tolist() for r in (one, two)
    ]
    assert samples[0] == samples[1]


@MODES
@pytest.mark.parametrize("turns", [4, 37])
def test_writing_step_by_step_is_storing_them_at_once(waits: bool, turns: int) -> None:
    streams, cache = Streams(2, waits), RolloutCache(turns)
    singly, whole = ExperienceReplay(60, 1, seed=0), ExperienceReplay(60, 1, seed=0)
    for _ in range(turns):
        streams.turn(singly, cache)
    for at in range(turns):
        whole.store(part(cache.read(), at, at + 1))
    assert singly.stored == whole.stored
    for (path, x), (_, y) in zip(
        tree.leaves(singly.state_dict()["rows"]),
        tree.leaves(whole.state_dict()["rows"]),
        strict=True,
    ):
        assert x.tolist() == y.tolist(), path


def test_how_the_steps_were_cut_into_chunks_leaves_no_trace() -> None:
    drawn = []
    for lengths in ([24], [1] * 24, [5, 2, 7, 10]):
        replay = fill(ExperienceReplay(150, 1, seed=3), Streams(2, False, chance=0.2), lengths)
        drawn.append(replay.sample(100, 2).experience.observation["o"].tolist())
    assert drawn[0] == drawn[1] == drawn[2]


@MODES
def test_stored_counts_valid_steps_and_decides_when_it_is_ready(waits: bool) -> None:
    streams = Streams(2, waits)
    replay = ExperienceReplay(200, 11, seed=0)
    found = []
    for _ in range(12):
        fill(replay, streams, [1])
        valid = sum(row.valid for env in streams.envs for row in env.rows)
        found.append((replay.stored == valid, replay.ready() == (valid >= 11)))
    assert found == [(True, True)] * 12
    assert replay.ready()


def test_a_replay_too_small_for_its_chunks_is_refused() -> None:
    with pytest.raises(UsageError, match=r"replay_size = 20: too small .* at least 22"):
        fill(ExperienceReplay(20, 1, seed=0), Streams(2, False), [5])
    assert fill(ExperienceReplay(22, 1, seed=0), Streams(2, False), [5]).capacity == 12


def test_a_later_chunk_that_is_too_long_is_refused_too() -> None:
    replay = fill(ExperienceReplay(6, 1, seed=0), Streams(2, False), [1])
    with pytest.raises(UsageError, match="replay_size = 6: too small for chunks of 9 steps"):
        fill(replay, Streams(2, False), [9])


def test_a_window_longer_than_anything_held_is_refused() -> None:
    replay = fill(ExperienceReplay(50, 1, seed=0), Streams(1, False, chance=0.0), [3])
    assert replay.sample(2, length=3).experience.reward.shape == (3, 2)
    with pytest.raises(UsageError, match="holds no 4 consecutive steps"):
        replay.sample(2, length=4)


@settings(max_examples=60, deadline=None)
@given(
    streams=st.builds(
        Streams, st.integers(1, 3), st.booleans(), st.integers(0, 99), st.sampled_from([0.1, 1.0])
    ),
    lengths=st.lists(st.integers(1, 5), min_size=1, max_size=9),
    spare=st.integers(0, 20),
    length=st.integers(1, 4),
)
def test_the_newest_rows_of_every_environment_end_with_its_last_step(
    streams: Streams, lengths: list[int], spare: int, length: int
) -> None:
    size = (2 * max(lengths) + 1) * len(streams.envs) + spare
    replay = fill(ExperienceReplay(size, 1, seed=0), streams, lengths)
    assert replay.rows == min(len(env.rows) for env in streams.envs)
    if replay.rows < length:
        with pytest.raises(UsageError, match=f"holds no {length} consecutive steps"):
            replay.newest(length)
        return
    newest = replay.newest(length)
    for b, env in enumerate(streams.envs):
        assert newest.observation["o"][-1, b].item() == env.seen
        check_window(streams, newest[:, b], length)


def test_an_empty_replay_has_no_newest_rows() -> None:
    replay = ExperienceReplay(40, 1, seed=1)
    assert replay.rows == 0
    with pytest.raises(UsageError, match="holds no 1 consecutive steps"):
        replay.newest(1)
