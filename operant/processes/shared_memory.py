"""Arrays in memory that several processes see."""

from __future__ import annotations

import math
import mmap
import os
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

ALIGNMENT = 64  # bytes: a cache line
Allocate = Callable[[tuple[int, ...], np.dtype[Any]], np.ndarray[Any, Any]]  # shape, dtype


class ArrayAllocator:
    """Allocates arrays one after the other in a buffer; without a buffer it only counts bytes.

    Processes that ask for the same arrays in the same order get the same bytes.
    """

    def __init__(self, buffer: Any = None) -> None:
        self.buffer, self.used = buffer, 0

    def __call__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        count, start = math.prod(shape), self.used
        self.used += -(-count * dtype.itemsize // ALIGNMENT) * ALIGNMENT
        if self.buffer is None:
            return np.empty(0, dtype)
        return np.frombuffer(self.buffer, dtype, count, start).reshape(shape)

    @classmethod
    def over(cls, memory: int) -> ArrayAllocator:
        """An allocator in the shared memory behind a file descriptor."""
        return cls(mmap.mmap(memory, os.fstat(memory).st_size))


def size_of(allocate_all: Callable[[Allocate], object]) -> int:
    """Bytes that the arrays which a function allocates need."""
    counter = ArrayAllocator()
    allocate_all(counter)
    return counter.used


def anonymous_memory(size: int) -> int:
    """A file descriptor of shared memory that has no name and so cannot be left behind."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("operant")
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.ftruncate(fd, size)
    return fd
