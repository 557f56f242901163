"""The shared memory of a sampler and its workers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from operant.core import tree
from operant.core.experience import Arrays, Experience
from operant.core.tree import Array
from operant.memory.rollout import laid_out
from operant.processes.shared_memory import Allocate
from operant.processes.weights import TensorLayout
from operant.samplers.collector import ACTIVITIES
from operant.samplers.trajectory import Sums


class BufferLayout(NamedTuple):
    """What is allocated; every process that has it finds the same arrays in the same places."""

    workers: int
    envs: int
    length: int
    chunks: int  # number of chunks
    row: Experience  # empty arrays of the right shapes and types
    weights: list[TensorLayout]
    carried: Arrays  # an example of what acting carries on besides weights


class SharedBuffers(NamedTuple):
    """Arrays that every process sees.

    Of every array in `carried`, row 0 is what actors begin a chunk with, and row 1 + w is what the
    actor of worker w ended it with.
    """

    chunk: Array  # [1] index of the chunk to fill
    cursor: Array  # [1] row of the chunk at which new episodes begin
    seed: Array  # [1] of new episodes
    decorrelate: Array  # [1] each environment first takes fewer than so many random steps
    stop: Array  # [1] 1: leave the chunk unfinished
    progress: Array  # [W] steps taken
    seconds: Array  # [W, activities] of the last chunk
    carried: Arrays  # [1 + W, ...] by name
    sums: Sums  # of the episodes under way
    chunks: list[Any]  # Experience [T, B], as NumPy arrays
    weights: list[Tensor]

    @classmethod
    def allocate(cls, layout: BufferLayout, allocate: Allocate) -> SharedBuffers:
        """All arrays, one after the other."""

        def array(*shape: int, dtype: str = "int64") -> Array:
            return allocate(shape, np.dtype(dtype))

        workers, envs = layout.workers, layout.envs
        return cls(
            chunk=array(1),
            cursor=array(1),
            seed=array(1),
            decorrelate=array(1),
            stop=array(1),
            progress=array(workers),
            seconds=array(workers, len(ACTIVITIES), dtype="float64"),
            carried={
                k: allocate((1 + workers, *x.shape), x.dtype) for k, x in layout.carried.items()
            },
            sums=Sums.allocate(envs, _agents(layout.row), allocate),
            chunks=[
                laid_out(layout.row, layout.length, envs, allocate) for _ in range(layout.chunks)
            ],
            weights=[weight.tensor(allocate) for weight in layout.weights],
        )

    def read_carried(self, row: int) -> Arrays:
        """A copy of one row of what actors carry on."""
        copied: Arrays = tree.map(np.copy, tree.index(self.carried, row))
        return copied

    def write_carried(self, row: int, carried: Arrays) -> None:
        """Set one row of what actors carry on."""
        tree.write(self.carried, row, carried)


def _agents(row: Experience) -> int:
    """How many agents the record tells of; zero if it is of one."""
    return 0 if row.agents is None else int(row.agents["reward"].shape[-1])
