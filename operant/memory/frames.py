"""Stacks of overlapping frames, each frame stored once."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import torch

from operant.core.errors import EnvironmentFault
from operant.core.experience import Experience
from operant.core.spaces import Shape
from operant.core.tree import Array
from operant.memory import storage
from operant.memory.rollout import Allocate

SPARE = 64  # one frame in so many is kept free for the older frames of first stacks


class Frames:
    """The frames of one observation, in the order they came, counted by environment.

    A stack is named by the number of its newest frame. The first stack of an episode brings all
    its frames along, whatever it is padded with; each one after it brings one. So any stack is a
    run of consecutive frames.
    """

    def __init__(
        self, name: str, shape: Shape, dtype: np.dtype[Any], capacity: int, allocate: Allocate
    ) -> None:
        envs, self.depth, *frame = self.shape = shape
        self.name, self.capacity = name, capacity
        self.frames = allocate((capacity, envs, *frame), dtype)
        self.newest = np.full(envs, -1, dtype=np.int64)  # of the stack that came last
        self._flat = self.frames.reshape(-1, *frame)

    @property
    def oldest(self) -> Array:
        """By environment, the oldest stack of which no frame was overwritten."""
        return self.newest - self.capacity + self.depth

    def store(self, chunk: Experience) -> Experience:
        """Keep the frames of a chunk; the chunk with the numbers of its stacks in their place."""
        seen, final = chunk.observation[self.name], chunk.final_observation[self.name]
        self._check_overlap(chunk, seen, final)
        ends, lost = chunk.replaced, chunk.replaced & ~chunk.valid
        whole = np.concatenate([self._unknown(seen[0])[None], chunk.first[1:]])
        # How many frames each stack brings, in the order seen, final, seen, final, ..., seen.
        brought = np.empty((2 * len(ends) + 1, ends.shape[1]), dtype=np.int64)
        brought[0::2] = np.where(whole, self.depth, 1)
        brought[0] *= whole[0]
        brought[1::2] = np.where(lost, self.depth, ends)
        numbers = self.newest + brought.cumsum(axis=0)
        self._write(numbers[0::2], seen, np.ones_like(whole), whole)
        self._write(numbers[1::2], final, ends, lost)
        self.newest = numbers[-1].copy()
        return chunk._replace(
            observation=chunk.observation | {self.name: numbers[0::2]},
            final_observation=chunk.final_observation | {self.name: numbers[1::2]},
        )

    def _unknown(self, stack: Array) -> Array:
        """Where this is not the stack that came last."""
        held = self.read(self.newest, np.arange(len(self.newest))).numpy()
        other: Array = (self._words(held) != self._words(stack)).any(axis=(1, 2))
        return other | (self.newest < 0)

    def _words(self, stacks: Array) -> Array:
        """Stacks `[..., depth, n]` as whole words where they are such: eight times as quick."""
        lead = stacks.shape[: stacks.ndim - len(self.shape) + 2]
        flat = stacks.reshape(*lead, -1)
        return flat.view(np.uint8 if flat.shape[-1] * flat.itemsize % 8 else np.uint64)

    def _write(self, numbers: Array, stacks: Array, new: Array, whole: Array) -> None:
        """The newest frames of `new` stacks, and all others of `whole` ones."""
        t, b = new.nonzero()
        self.frames[numbers[t, b] % self.capacity, b] = stacks[t, b, -1]
        t, b = whole.nonzero()
        if len(t):
            older = numbers[t, b, None] + np.arange(1 - self.depth, 0)
            self.frames[older % self.capacity, b[:, None]] = stacks[t, b, :-1]

    def _check_overlap(self, chunk: Experience, seen: Array, final: Array) -> None:
        seen, final = self._words(seen), self._words(final)
        for t in range(len(chunk.reward)):  # one at a time: long chunks of images are large
            self._check_step(t, seen[t], seen[t + 1], ~chunk.first[t + 1])
            ends = chunk.replaced[t] & chunk.valid[t]
            if ends.any():
                self._check_step(t, seen[t], final[t], ends)

    def _check_step(self, t: int, before: Array, after: Array, same_episode: Array) -> None:
        moved = (after[:, :-1] != before[:, 1:]).any(axis=(1, 2)) & same_episode
        if moved.any():
            raise EnvironmentFault(
                f"environment {int(moved.argmax())}, step {t} of the chunk: observation "
                f"{self.name!r} is no stack of frames of which the step added one, so each frame "
                f"cannot be stored once; set replay_frames = 'off'"
            )

    def read(self, numbers: Array, columns: Array) -> torch.Tensor:
        """The stacks `[..., depth, ...]` of these numbers, of environments `columns`."""
        run = (numbers[..., None] + np.arange(1 - self.depth, 1)) % self.capacity
        places = run * self.frames.shape[1] + columns[..., None]
        return torch.from_numpy(self._flat.take(places, axis=0))

    def state_dict(self, save: storage.Save) -> dict[str, Any]:
        """The frames that were ever written."""
        used = min(self.capacity, int(self.newest.max()) + 1)
        frames = save(self.frames[:used])
        made = {"shape": list(self.shape), "capacity": self.capacity}
        return {**made, "dtype": self.frames.dtype.str, "newest": self.newest, "frames": frames}

    @classmethod
    def from_state(cls, name: str, state: dict[str, Any], allocate: Allocate) -> Self:
        """What `state_dict` was asked of."""
        dtype = np.dtype(state["dtype"])
        frames = cls(name, tuple(state["shape"]), dtype, state["capacity"], allocate)
        frames.newest = state["newest"].copy()
        storage.load(frames.frames, state["frames"])
        return frames


def frame_rows(rows: int, depth: int, steps: int) -> int:
    """Frames to keep of each environment for `rows` rows that come in chunks of `steps`."""
    return rows + max(rows // SPARE, 2 * depth * (steps + 1))
