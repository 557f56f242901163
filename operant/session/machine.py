"""Settings of the training process: threads of PyTorch, and memory of the C library."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

import torch

from operant.envs.managers.choose import cores

MIB = 1 << 20
# Blocks up to this size are reused instead of mapped; glibc before 2.35 accepts only the second.
REUSED_SIZES = (64 * MIB, 32 * MIB)
KEPT_SIZE = 1024 * MIB  # free memory that the process keeps instead of returning it
# The parameters M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h in the GNU C library.
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")  # by which users set the number of threads
CPUINFO = Path("/proc/cpuinfo")

ours = 0  # the number of threads that an earlier run of this process has set; 0: none has


def prepare(threads: int) -> None:
    """Set the number of PyTorch's threads, and keep freed memory for the next update."""
    global ours  # noqa: PLW0603  # torch's number is one of the process, too
    if torch.get_num_threads() != threads:
        torch.set_num_threads(threads)
        ours = threads
    keep_memory()


def given_threads() -> int:
    """The number of threads that the user has set, by a variable or in the program; 0: none."""
    for name in VARIABLES:
        first = os.environ.get(name, "").split(",")[0].strip()  # one a level of nested loops
        if first.isdecimal() and int(first) > 0:
            return int(first)
    current = torch.get_num_threads()
    return 0 if current == ours or current in default_threads() else current


def default_threads() -> range:
    """Numbers of threads that PyTorch may have started with: cores, or what they run at once."""
    logical = os.cpu_count() or 1
    try:
        lines = CPUINFO.read_text("ascii", "replace").splitlines()
    except OSError:  # other systems: no number up to that of cores tells that it was set
        return range(1, logical + 1)
    named = [line for line in lines if line.startswith(("physical id", "core id"))]
    physical = len(set(zip(named[::2], named[1::2], strict=False)))
    return range(min(physical or 1, cores()), logical + 1)


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
