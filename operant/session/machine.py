"""How a process that trains uses the machine: its threads, and the memory it keeps."""

from __future__ import annotations

import ctypes
import sys

import torch

MIB = 1 << 20
# Blocks up to this size are taken from what the process holds; glibc before 2.35 takes no more
# than the second.
RECYCLED = (64 * MIB, 32 * MIB)
KEPT = 1024 * MIB  # free memory that the process goes on holding
# Numbers that malloc.h of the GNU C library gives these two.
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3


def prepare(threads: int) -> None:
    """Give torch this many threads, and hold on to memory from one update to the next."""
    torch.set_num_threads(threads)
    keep_memory()


def keep_memory() -> None:
    """Do not give freed blocks back to the system, where this is the C library's habit.

    Every update allocates and frees the same megabytes. Asking the system for them anew, and
    having them cleared, takes up to a fifth of the time in which a small batch of images is
    learned from.
    """
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # not every C library has it
    if mallopt is not None:
        for size in RECYCLED:
            if mallopt(MMAP_THRESHOLD, size):
                break
        mallopt(TRIM_THRESHOLD, KEPT)
