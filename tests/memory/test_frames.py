"""Replays that store each frame once, sample for sample beside those that store every stack."""

from __future__ import annotations

from tempfile import gettempdir
from typing import Any

import numpy as np
import pytest
import torch
from films import Films
from hypothesis import given, settings
from hypothesis import strategies as st
from windows import check_same, check_window, next_chunk

from operant.core import tree
from operant.core.errors import EnvironmentFault, UsageError
from operant.core.schedule import Schedule
from operant.memory.prioritized import PrioritizedReplay
from operant.memory.replay import ExperienceReplay
from operant.memory.rollout import RolloutCache
from operant.memory.storage import allocator

PADDINGS = st.sampled_from(["zero", "repeat", "noise"])
FILMS = st.builds(
    Films,
    st.integers(1, 3),
    st.booleans(),
    st.integers(0, 99),
    st.sampled_from([0.0, 0.05, 0.3, 1.0]),
    st.integers(1, 4),
    PADDINGS,
)


def replay(size: int, prioritized: bool = False, **options: Any) -> ExperienceReplay:
    if prioritized:
        return PrioritizedReplay(size, 1, 0, 0.6, Schedule(0.4), **options)
    return ExperienceReplay(size, 1, 0, **options)


def store(films: Films, steps: int, *memories: ExperienceReplay) -> None:
    """The same chunk into each."""
    chunk = next_chunk(films, steps)
    for memory in memories:
        memory.store(chunk)


@settings(max_examples=120, deadline=None)
@given(
    films=FILMS,
    lengths=st.lists(st.integers(1, 5), min_size=1, max_size=9),
    spare=st.integers(0, 60),
    length=st.integers(1, 4),
    prioritized=st.booleans(),
)
def test_frames_stored_once_give_the_same_samples_as_stacks(
    films: Films, lengths: list[int], spare: int, length: int, prioritized: bool
) -> None:
    size = (2 * max(lengths) + 1) * len(films.envs) + spare
    once = replay(size, prioritized, stacked=("film",))
    stacks = replay(size, prioritized)
    for steps in [max(lengths), *lengths]:
        store(films, steps, once, stacks)
        if not once.holds(length) or not (once.count == stacks.count).all():
            continue
        try:
            expected = stacks.sample(20, length)
        except UsageError:
            continue
        drawn = once.sample(20, length)
        check_same(drawn, expected)
        for memory in (once, stacks):
            memory.prioritize(drawn.place, torch.arange(20.0))


@settings(max_examples=60, deadline=None)
@given(
    films=FILMS,
    chunks=st.integers(5, 30),
    length=st.integers(1, 3),
    prioritized=st.booleans(),
)
def test_where_episodes_are_short_fewer_steps_are_held_and_all_are_whole(
    films: Films, chunks: int, length: int, prioritized: bool
) -> None:
    memory = replay(40 * len(films.envs), prioritized, stacked=("film",))
    for _ in range(chunks):
        store(films, 3, memory)
    drawn = memory.sample(30, length).experience
    ids = drawn.observation["o"].squeeze(-1)
    for i in range(30):
        window = drawn[:, i]
        check_window(films, window, length)
        assert (
            window.observation["film"].numpy().tolist() == films.truth(ids[:, i].tolist()).tolist()
        )


def test_frames_that_run_out_take_the_oldest_rows_with_them() -> None:
    films = Films(1, waits=False, chance=1.0)  # two rows and five frames a step
    memory = replay(100, stacked=("film",))
    counts = []
    for _ in range(40):
        store(films, 3, memory)
        counts.append(int(memory.count[0]))
    assert memory.frames["film"].capacity == 101 + 2 * 4 * 4
    # Behind the stack at the cursor, 26 final rows and the 25 rows before them are whole.
    assert counts[:3] == [6, 12, 18]
    assert counts[-9:] == [51] * 9


def test_each_frame_takes_its_bytes_once() -> None:
    films = Films(2, waits=True, chance=0.0)
    memory = replay(2000, stacked=("film",))
    store(films, 5, memory)
    assert memory.frames["film"].frames.nbytes == (1001 + 48) * 2 * 9
    assert memory.fields["observation"]["film"].dtype == np.int64


def test_stacks_that_do_not_overlap_are_refused_with_the_remedy() -> None:
    films = Films(2, waits=False, chance=0.0)
    chunk = films.fill(RolloutCache(4))
    chunk.observation["film"][3, 1, 0] += 1
    memory = replay(100, stacked=("film",))
    with pytest.raises(EnvironmentFault, match=r"environment 1, step 2 .*'film'.*'off'"):
        memory.store(chunk)


def test_a_final_stack_that_does_not_overlap_is_refused() -> None:
    films = Films(1, waits=False, chance=1.0)
    chunk = films.fill(RolloutCache(2))
    chunk.final_observation["film"][1, 0, 1] += 1
    with pytest.raises(EnvironmentFault, match="environment 0, step 1"):
        replay(100, stacked=("film",)).store(chunk)


def test_an_episode_that_was_lost_ends_in_whatever_is_shown() -> None:
    films = Films(1, waits=False, chance=1.0)
    chunk = films.fill(RolloutCache(3))
    chunk.valid[1] = False
    chunk.final_observation["film"][1] = 0
    once, stacks = replay(100, stacked=("film",)), replay(100)
    for memory in (once, stacks):
        memory.store(chunk)
    check_same(once.sample(50, 3), stacks.sample(50, 3))


def test_a_chunk_that_does_not_go_on_from_the_last_is_kept_whole() -> None:
    once, stacks = replay(100, stacked=("film",)), replay(100)
    for seed in (0, 1):
        films = Films(2, waits=True, seed=seed, padding="noise")
        films.fill(RolloutCache(seed + 1))
        store(films, 4, once, stacks)
    check_same(once.sample(60, 2), stacks.sample(60, 2))


@pytest.mark.parametrize("prioritized", [False, True])
@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("directory", ["", gettempdir()])
def test_a_restored_replay_gives_the_same_samples(
    prioritized: bool, compress: bool, directory: str
) -> None:
    films = Films(2, waits=False, chance=0.1)
    options: dict[str, Any] = {"stacked": ("film",), "compress": compress}
    options["allocate"] = allocator(directory)
    original, other = (replay(60, prioritized, **options) for _ in range(2))
    for _ in range(25):
        store(films, 3, original)
    original.sample(5)
    other.load_state_dict(original.state_dict())
    store(films, 3, original, other)
    check_same(original.sample(50, 2), other.sample(50, 2))


def test_a_replay_whose_frames_ran_out_is_restored_whole() -> None:
    films = Films(2, waits=False, chance=1.0)
    original, other = (replay(60, stacked=("film",)) for _ in range(2))
    for _ in range(25):
        store(films, 3, original)
    other.load_state_dict(original.state_dict())
    assert (original.count < original.capacity - 1).all()
    check_same(original.sample(200), other.sample(200))


def test_a_chunk_too_long_for_the_frames_is_refused() -> None:
    films = Films(1, waits=False)
    memory = replay(70, stacked=("film",))
    store(films, 1, memory)
    with pytest.raises(UsageError, match=r"replay_size = 70: .* fewer than 30 steps"):
        store(films, 30, memory)


@settings(max_examples=20, deadline=None)
@given(films=FILMS, lengths=st.lists(st.integers(1, 5), min_size=1, max_size=9))
def test_a_replay_on_disk_is_as_one_in_memory(films: Films, lengths: list[int]) -> None:
    size = 60 * len(films.envs)
    on_disk = replay(size, stacked=("film",), allocate=allocator(gettempdir()))
    in_memory = replay(size, stacked=("film",))
    for steps in [max(lengths), *lengths]:
        store(films, steps, on_disk, in_memory)
    check_same(on_disk.sample(40), in_memory.sample(40))
    pairs = zip(tree.leaves(on_disk.state_dict()), tree.leaves(in_memory.state_dict()), strict=True)
    assert all(np.array_equal(x, y) for (_, x), (_, y) in pairs)
