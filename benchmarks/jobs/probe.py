"""What every job shares: its arguments, and how it tells what it found.

Needs no library but Python's own, since it also runs where only a peer is installed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

HELD = 50_000  # transitions
PACKAGES = ("torch", "numpy", "gymnasium", "ale-py", "mujoco")
LIBRARIES = {"sb3": "stable-baselines3"}  # where the package is not called as the contender


class Arguments(argparse.Namespace):
    """What a job is told."""

    work: str
    contender: str
    seconds: float  # how long to measure
    warm: float  # how long to run before
    held: int  # transitions, where memory is measured


def arguments() -> Arguments:
    """From the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("work")
    parser.add_argument("contender")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--warm", type=float, default=3.0)
    parser.add_argument("--held", type=int, default=HELD)
    return parser.parse_args(namespace=Arguments())


class Probe:
    """Call it with the step count at every iteration boundary until it says that it is done.

    Measures from the first boundary after `warm` seconds beyond step `start`. `more` gives what
    else is to be told.
    """

    def __init__(
        self, asked: Arguments, start: int = 0, more: Callable[[], dict[str, object]] = dict
    ) -> None:
        self.asked, self.start, self.more = asked, start, more
        self.warm_from: float | None = None
        self.begun: tuple[float, int] | None = None
        self.done = False

    def __call__(self, steps: int) -> bool:
        """Take in a boundary; tells the result and returns True once enough time has passed."""
        now = time.perf_counter()
        if self.done or steps < self.start:
            return self.done
        if self.warm_from is None:
            self.warm_from = now
        if self.begun is None:
            # At least one whole iteration, since the first allocates and compiles.
            if now - self.warm_from >= self.asked.warm and now > self.warm_from:
                self.begun = (now, steps)
            return False
        begin, before = self.begun
        if now - begin >= self.asked.seconds:
            self.done = True
            tell(self.asked, (steps - before) / (now - begin), **self.more())
        return self.done


def tell(asked: Arguments, value: float, **more: object) -> None:
    """Print the result as the last line."""
    torch = sys.modules.get("torch")
    threads = torch.get_num_threads() if torch else None
    found = {"value": value, **more, "threads": threads, "versions": versions(asked.contender)}
    print(json.dumps(found), flush=True)


def versions(contender: str) -> dict[str, str]:
    """What is installed here of the contender and of what it stands on."""
    found = {}
    for name in (LIBRARIES.get(contender, contender), *PACKAGES):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def cost(work: Callable[[], object], seconds: float, warm: float = 0.3) -> float:
    """Mean seconds of one call."""
    begin = time.perf_counter()
    while time.perf_counter() - begin < warm:
        work()
    begin, calls = time.perf_counter(), 0
    while calls == 0 or time.perf_counter() - begin < seconds:
        work()
        calls += 1
    return (time.perf_counter() - begin) / calls


def resident() -> int:
    """Bytes of memory that this process holds at the moment."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
