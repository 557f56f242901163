"""Settings of a replay buffer, the buffer they ask for, and the bytes it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Literal, NamedTuple

import numpy as np

from operant.core.config import Config, Count, CountOrZero, Fraction, Positive, Share
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
class UniformReplayConfig(Config):
    """What a replay buffer holds that is sampled uniformly."""

    replay_size: Count = 100_000  # size of the replay buffer, in environment steps
    learning_starts: CountOrZero = 1_000  # environment steps collected before the first update
    batch_size: Count = 32  # samples in a batch
    replay_frames: Literal["auto", "off"] = "auto"  # auto: store each frame of stacked images once
    replay_dir: str = ""  # directory for a replay buffer larger than memory; empty: in memory
    replay_compress: bool = True  # compress the images in checkpoints


@dataclass(frozen=True, kw_only=True)
class ReplayConfig(UniformReplayConfig):
    """What the replay buffer holds, how it is sampled, and how often it is learned from."""

    updates_per_step: Positive = 0.25  # gradient steps for each environment step
    prioritized: bool = False  # prioritized experience replay (arXiv:1511.05952)
    priority_alpha: Fraction = 0.6  # exponent of priorities; 0: uniform sampling
    priority_beta: Share = Schedule(0.4, 1.0, 1_000_000)  # exponent of importance-sampling weights

    def updates_due(self, stored: int, done: int) -> int:
        """Gradient steps due after so many steps stored, less those done."""
        return max(0, int((stored - self.learning_starts) * self.updates_per_step) - done)

    def gradient_steps(self, steps: int, num_envs: int) -> int:
        """Gradient steps in a run of so many environment steps."""
        return int((steps - self.learning_starts) * self.updates_per_step)

    def gradient_rows(self, num_envs: int) -> int:
        """Rows behind one gradient step."""
        return self.batch_size


def make_replay(config: UniformReplayConfig, spaces: Spaces, seed: int) -> ExperienceReplay:
    """The memory that a configuration asks for."""
    options: dict[str, Any] = {
        "stacked": stacked(config, spaces),
        "allocate": allocator(config.replay_dir),
        "compress": config.replay_compress,
    }
    size, starts = config.replay_size, config.learning_starts
    if not isinstance(config, ReplayConfig) or not config.prioritized:
        return ExperienceReplay(size, starts, seed, **options)
    alpha, beta = config.priority_alpha, config.priority_beta
    return PrioritizedReplay(size, starts, seed, alpha, beta, **options)


def stacked(config: UniformReplayConfig, spaces: Spaces) -> tuple[str, ...]:
    """Observations of which each frame is stored once."""
    return spaces.stacked if config.replay_frames == "auto" else ()


class Footprint(NamedTuple):
    """Bytes of a full replay."""

    rows: int  # in memory, or on disk where there is a directory
    priorities: int  # in memory


def footprint(
    config: UniformReplayConfig,
    spaces: Spaces,
    hidden_state: Mapping[str, Any],
    envs: int,
    steps: int,
    memo: Mapping[str, Any] | None = None,
) -> Footprint:
    """What a replay takes that holds chunks of `steps` steps of `envs` environments.

    `hidden_state` and `memo` are those of one row, `[1, ...]` by name.
    """
    rows = ring_rows(config.replay_size, envs)
    seen = {name: _like(space.shape, space.dtype) for name, space in spaces.observation.items()}
    frames = 0
    for name in stacked(config, spaces):
        depth, *frame = seen[name].shape[2:]
        frames += frame_rows(rows, depth, steps) * prod(frame) * seen[name].itemsize
        seen[name] = _like((), np.int64)  # a number in the place of a stack
    example = {
        "observation": seen,
        "hidden_state": {k: _like(x.shape[1:], np.float32) for k, x in hidden_state.items()},
        "action": {name: _like(space.shape, space.dtype) for name, space in spaces.action.items()},
        "memo": {k: _like(x.shape[1:], x.cpu().numpy().dtype) for k, x in (memo or {}).items()},
        "reward": _like((), np.float32),
        **dict.fromkeys(("first", "terminated", "truncated", "valid"), _like((), np.bool_)),
    }
    prioritized = isinstance(config, ReplayConfig) and config.prioritized
    priorities = tree_bytes(rows * envs) if prioritized else 0
    return Footprint((rows * row_bytes(example) + frames) * envs, priorities)


def _like(shape: Shape | None, dtype: Any) -> Array:
    return np.zeros((0, 1, *(shape or ())), dtype or np.int64)
