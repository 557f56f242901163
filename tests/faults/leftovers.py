"""What a test may not leave behind: processes, shared memory, open files."""

from __future__ import annotations

import gc
import multiprocessing
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil

from operant.processes.process import FORKSERVER

PATIENCE = 10.0  # seconds in which killed processes are gone, also on a busy machine


def running(processes: list[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Those that have not ended in time; one that only waits to be reaped has."""
    left, deadline = [one for one in processes if _runs(one)], time.monotonic() + seconds
    while left and time.monotonic() < deadline:
        time.sleep(0.02)
        left = [one for one in left if _runs(one)]
    return left


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def descendants() -> list[psutil.Process]:
    """The processes that this one has started, and those that they have."""
    found: list[psutil.Process] = psutil.Process().children(recursive=True)
    return found


@contextmanager
def watched() -> Iterator[None]:
    """Fail if a process, a piece of shared memory or an open file is left that was not there."""
    child = FORKSERVER.Process(target=int)  # the fork server and its descriptors stay
    child.start()
    child.join()
    child.close()
    gc.collect()
    before, shared, files = set(descendants()), set(os.listdir("/dev/shm")), _descriptors()
    yield
    gc.collect()  # errors keep the frames they passed, and those the shared memory
    assert not multiprocessing.active_children()
    left = running([one for one in descendants() if one not in before], PATIENCE)
    assert not left
    assert set(os.listdir("/dev/shm")) <= shared
    now = _descriptors()
    assert len(now) <= len(files), {fd: now[fd] for fd in now.keys() - files.keys()}


def _descriptors() -> dict[str, str]:
    """Open files, but for fonts, which matplotlib keeps open once it has drawn."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # that of the listing itself
            found[name] = os.readlink(f"/proc/self/fd/{name}")
    return {name: target for name, target in found.items() if not target.endswith(".ttf")}
