"""Settings of a replay, and what they cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from films import SIDE, Films
from gymnasium.spaces import Box, Discrete
from windows import next_chunk

from operant.core.errors import UsageError
from operant.core.schedule import Schedule
from operant.core.spaces import Spaces
from operant.memory.prioritized import PrioritizedReplay
from operant.memory.replay_settings import (
    ReplayConfig,
    UniformReplayConfig,
    footprint,
    make_replay,
)

FILM = Box(0, 255, (4, SIDE, SIDE), np.uint8)
SPACES = Spaces(
    {"o": Box(-9, 9, (1,), np.int64), "film": FILM}, {"a": Discrete(5)}, stacked=("film",)
)
ATARI = Spaces(
    {"observation": Box(0, 255, (4, 84, 84), np.uint8)},
    {"action": Discrete(6)},
    stacked=("observation",),
)


def test_a_replay_is_uniform_unless_it_is_to_be_prioritized() -> None:
    plain = make_replay(ReplayConfig(replay_size=50, learning_starts=7), SPACES, 1)
    assert (type(plain).__name__, plain.size, plain.min_size) == ("ExperienceReplay", 50, 7)
    beta = Schedule(0.1, 1.0, 100)
    config = ReplayConfig(prioritized=True, priority_alpha=0.3, priority_beta=beta)
    memory = make_replay(config, SPACES, 1)
    assert isinstance(memory, PrioritizedReplay)
    assert (memory.alpha, memory.beta) == (0.3, beta)


def test_frames_are_stored_once_unless_that_is_off() -> None:
    assert make_replay(ReplayConfig(), SPACES, 1).stacked == ("film",)
    assert make_replay(ReplayConfig(replay_frames="off"), SPACES, 1).stacked == ()


def test_a_directory_that_is_not_there_is_refused_at_once(tmp_path: Path) -> None:
    config = ReplayConfig(replay_dir=str(tmp_path / "none"))
    with pytest.raises(UsageError, match=r"replay_dir = '.*none': No such file"):
        make_replay(config, SPACES, 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"priority_beta": Schedule(2.0)}, "priority_beta = 2.0: expected a number from 0 to 1"),
        ({"priority_alpha": 1.5}, "priority_alpha = 1.5: expected a number from 0 to 1"),
        ({"replay_size": 0}, "replay_size = 0: expected"),
    ],
)
def test_values_out_of_range_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ReplayConfig(**changes)


@pytest.mark.parametrize("prioritized", [False, True])
@pytest.mark.parametrize("frames", ["auto", "off"])
def test_the_bytes_foretold_are_those_taken(frames: Any, prioritized: bool) -> None:
    config = ReplayConfig(replay_size=9000, replay_frames=frames, prioritized=prioritized)
    memory, films = make_replay(config, SPACES, 1), Films(3, waits=True)
    memory.store(next_chunk(films, 5))
    memo = {"m": torch.zeros(1, dtype=torch.int64)}
    told = footprint(config, SPACES, {"h": torch.zeros(1, 1)}, 3, 5, memo)
    assert memory.ring is not None
    rows = memory.ring._packed.nbytes + sum(x.frames.nbytes for x in memory.frames.values())
    beyond = 8  # a state of eight bytes where four are foretold, and their alignment
    assert told.rows <= rows <= told.rows + beyond * 9003
    levels = memory.tree.levels if isinstance(memory, PrioritizedReplay) else ()
    kept = sum(level.nbytes for level in levels)
    assert kept == pytest.approx(told.priorities, rel=0.08)


@pytest.mark.parametrize(
    ("size", "frames", "gib"), [(50_000, "auto", 0.335), (1_000_000, "auto", 6.70)]
)
def test_atari_takes_little_more_than_its_frames(size: int, frames: Any, gib: float) -> None:
    config = ReplayConfig(replay_size=size, replay_frames=frames)
    told = footprint(config, ATARI, {}, envs=1, steps=4)
    assert told.rows / 2**30 == pytest.approx(gib, rel=0.01)
    assert told.rows < 1.1 * size * 84 * 84


def test_what_acting_leaves_behind_is_foretold_too() -> None:
    config = UniformReplayConfig(replay_size=8000)
    logits = {"logits": torch.zeros(1, 1000)}
    without, told = (footprint(config, SPACES, {}, 1, 5, memo) for memo in (None, logits))
    assert told.rows - without.rows == 8001 * 4000
    assert told.priorities == 0
    assert type(make_replay(config, SPACES, 1)).__name__ == "ExperienceReplay"


def test_without_frames_of_their_own_stacks_take_four_times_as_much() -> None:
    config = ReplayConfig(replay_size=50_000, replay_frames="off")
    told = footprint(config, ATARI, {}, envs=1, steps=4)
    assert told.rows / 2**30 == pytest.approx(1.32, abs=0.01)
