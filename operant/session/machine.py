"""Settings of the training process: threads of PyTorch, and memory of the C library."""

from __future__ import annotations

import ctypes
import sys

import torch

MIB = 1 << 20
# Blocks up to this size are reused instead of mapped; glibc before 2.35 accepts only the second.
REUSED_SIZES = (64 * MIB, 32 * MIB)
KEPT_SIZE = 1024 * MIB  # free memory that the process keeps instead of returning it
# The parameters M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h in the GNU C library.
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3


def prepare(threads: int) -> None:
    """Set the number of PyTorch's threads, and keep freed memory for the next update."""
    torch.set_num_threads(threads)
    keep_memory()


def keep_memory() -> None:
    """Let glibc keep freed blocks instead of returning them to the system.

    Every update allocates and frees the same megabytes. Getting them from the system each time,
    which clears them, takes up to a fifth of a gradient step on a small batch of images.
    """
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # only glibc has it
    if mallopt is not None:
        for size in REUSED_SIZES:
            if mallopt(MMAP_THRESHOLD, size):
                break
        mallopt(TRIM_THRESHOLD, KEPT_SIZE)
