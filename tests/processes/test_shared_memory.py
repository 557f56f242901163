"""Arrays in shared memory: the same bytes in every process, and nothing of torch."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np

from operant.processes.shared_memory import Allocate, ArrayAllocator, anonymous_memory, size_of


def three(allocate: Allocate) -> list[Any]:
    """Arrays whose sizes are no multiples of a cache line."""
    shapes = [((3,), "int8"), ((2, 5), "float64"), ((7,), "bool")]
    return [allocate(shape, np.dtype(dtype)) for shape, dtype in shapes]


def test_two_allocators_over_one_memory_give_the_same_arrays() -> None:
    memory = anonymous_memory(size_of(three))
    ours, theirs = (three(ArrayAllocator.over(memory)) for _ in range(2))
    os.close(memory)
    for i, (x, y) in enumerate(zip(ours, theirs, strict=True)):
        x[...] = i + 1
        assert y.tolist() == x.tolist()
    assert ours[0].tolist() == [1, 1, 1]  # the others do not overlap it


def test_every_array_begins_at_a_cache_line() -> None:
    arrays = three(ArrayAllocator(bytearray(size_of(three))))
    begins = [x.__array_interface__["data"][0] for x in arrays]
    assert [begin - begins[0] for begin in begins] == [0, 64, 192]
    assert size_of(three) == 256


def test_what_workers_import_does_without_torch() -> None:
    names = ("process", "pool", "worker", "shared_memory")
    modules = ", ".join(f"operant.processes.{name}" for name in names)
    code = f"import sys, {modules}; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
