"""The shared memory in which a sampler and its workers meet."""

from __future__ import annotations

import mmap
import os
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from operant.core.experience import Experience
from operant.core.protocols import Actor
from operant.core.tree import Array
from operant.memory.rollout import laid_out
from operant.processes.weights import Form
from operant.processes.worker import Carver
from operant.samplers.collector import ACTIVITIES


class Layout(NamedTuple):
    """What there is to lay out; it means the same to everyone who has it."""

    workers: int
    envs: int
    length: int
    buffers: int  # chunks
    row: Experience  # empty arrays of the right shapes and types
    forms: list[Form]  # of the weights
    generator: int  # bytes of a generator's state


class Desk(NamedTuple):
    """Arrays that every process sees. Of `generator` and `acted`, row 0 is what a batch begins
    with and row 1 + w what it left worker w with."""

    buffer: Array  # [1] which chunk to fill
    cursor: Array  # [1] at which row to begin new episodes
    seed: Array  # [1] to begin new episodes with
    warm: Array  # [1] most random steps before them
    stop: Array  # [1] leave the batch unfinished
    progress: Array  # [W] steps taken
    seconds: Array  # [W, activities] of the last batch
    acted: Array  # [1 + W]
    generator: Array  # [1 + W, bytes]
    rewards: Array  # [B] of the episodes under way
    lengths: Array  # [B] of the episodes under way
    chunks: list[Any]  # Experience [T, B], as NumPy sees it
    weights: list[Tensor]

    def give(self, actor: Actor) -> None:
        """What the next batch begins with."""
        self.acted[0] = actor.acted
        self.generator[0] = actor.generator.get_state().numpy()

    def take(self, actor: Actor, place: int = 0) -> None:
        """Go on from what a batch begins with, or from what it left behind."""
        actor.acted = int(self.acted[place])
        actor.generator.set_state(torch.from_numpy(self.generator[place]))

    def leave(self, actor: Actor, place: int) -> None:
        """What a batch left behind."""
        self.acted[place] = actor.acted
        self.generator[place] = actor.generator.get_state().numpy()


def lay(layout: Layout, carve: Carver) -> Desk:
    """Everything on the desk, one thing after the other."""

    def numbers(*shape: int, dtype: str = "int64") -> Array:
        return carve(shape, np.dtype(dtype))

    workers, envs = layout.workers, layout.envs
    return Desk(
        buffer=numbers(1),
        cursor=numbers(1),
        seed=numbers(1),
        warm=numbers(1),
        stop=numbers(1),
        progress=numbers(workers),
        seconds=numbers(workers, len(ACTIVITIES), dtype="float64"),
        acted=numbers(1 + workers),
        generator=numbers(1 + workers, layout.generator, dtype="uint8"),
        rewards=numbers(envs, dtype="float64"),
        lengths=numbers(envs),
        chunks=[laid_out(layout.row, layout.length, envs, carve) for _ in range(layout.buffers)],
        weights=[form.lay(carve) for form in layout.forms],
    )


def size_of(layout: Layout) -> int:
    """Bytes that the desk takes."""
    carve = Carver()
    lay(layout, carve)
    return carve.used


def mapped(layout: Layout, memory: int) -> Desk:
    """The desk in the shared memory behind a file descriptor."""
    return lay(layout, Carver(mmap.mmap(memory, os.fstat(memory).st_size)))
