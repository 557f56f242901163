"""Settings of a replay, what they cost, and the memory they ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Literal, NamedTuple

import numpy as np

from operant.core.config import AgentConfig, Count, CountOrZero, Fraction, Positive, check
from operant.core.schedule import Schedule
from operant.core.spaces import Shape, Spaces
from operant.core.tree import Array
from operant.memory.frames import frame_rows
from operant.memory.prioritized import PrioritizedReplay
from operant.memory.replay import ExperienceReplay, ring_rows
from operant.memory.ring import row_bytes
from operant.memory.storage import allocator
from operant.memory.sumtree import tree_bytes


@dataclass(frozen=True, kw_only=True)
class ReplayConfig(AgentConfig):
    """What is remembered, and how it is drawn."""

    replay_size: Count = 100_000  # steps that the memory holds
    learning_starts: CountOrZero = 1_000  # steps collected before the first update
    batch_size: Count = 32  # windows behind one gradient
    updates_per_step: Positive = 0.25  # gradient steps for each environment step
    prioritized: bool = False  # draw what surprised more often (arXiv:1511.05952)
    priority_alpha: Fraction = 0.6  # how much priorities matter; 0: not at all
    priority_beta: Schedule = Schedule(0.4, 1.0, 1_000_000)  # how much weights make up for them
    replay_frames: Literal["auto", "off"] = "auto"  # auto: of stacked images keep each frame once
    replay_dir: str = ""  # a directory on disk for replays larger than memory; empty: in memory
    replay_compress: bool = True  # compress the images of checkpoints

    def __post_init__(self) -> None:
        super().__post_init__()
        for share in (self.priority_beta.start, self.priority_beta.end):
            check("priority_beta", share, Fraction)


def make_replay(config: ReplayConfig, spaces: Spaces, seed: int) -> ExperienceReplay:
    """The memory that a configuration asks for."""
    options: dict[str, Any] = {
        "stacked": stacked(config, spaces),
        "allocate": allocator(config.replay_dir),
        "compress": config.replay_compress,
    }
    size, starts = config.replay_size, config.learning_starts
    if not config.prioritized:
        return ExperienceReplay(size, starts, seed, **options)
    alpha, beta = config.priority_alpha, config.priority_beta
    return PrioritizedReplay(size, starts, seed, alpha, beta, **options)


def stacked(config: ReplayConfig, spaces: Spaces) -> tuple[str, ...]:
    """Observations of which each frame is stored once."""
    return spaces.stacked if config.replay_frames == "auto" else ()


class Footprint(NamedTuple):
    """Bytes of a full replay."""

    rows: int  # in memory, or on disk where there is a directory
    priorities: int  # in memory


def footprint(
    config: ReplayConfig, spaces: Spaces, hidden_state: Mapping[str, Any], envs: int, steps: int
) -> Footprint:
    """What a replay takes that holds chunks of `steps` steps of `envs` environments."""
    rows = ring_rows(config.replay_size, envs)
    seen = {name: _like(space.shape, space.dtype) for name, space in spaces.observation.items()}
    frames = 0
    for name in stacked(config, spaces):
        depth, *frame = seen[name].shape[2:]
        frames += frame_rows(rows, depth, steps) * prod(frame) * seen[name].itemsize
        seen[name] = _like((), np.int64)  # a number in the place of a stack
    example = {
        "observation": seen,
        "hidden_state": {
            k: np.zeros((0, 1, *x.shape[1:]), np.float32) for k, x in hidden_state.items()
        },
        "action": {name: _like(space.shape, space.dtype) for name, space in spaces.action.items()},
        "reward": _like((), np.float32),
        **dict.fromkeys(("first", "terminated", "truncated", "valid"), _like((), np.bool_)),
    }
    priorities = tree_bytes(rows * envs) if config.prioritized else 0
    return Footprint((rows * row_bytes(example) + frames) * envs, priorities)


def _like(shape: Shape | None, dtype: Any) -> Array:
    return np.zeros((0, 1, *(shape or ())), dtype or np.int64)
