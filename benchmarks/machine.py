"""The machine that is measured on: what it is, and whether others leave it alone."""

from __future__ import annotations

import os
import platform
import resource
import sys
import time
from pathlib import Path

STAT = Path("/proc/stat")
CPUINFO = Path("/proc/cpuinfo")
VECTORS = ("avx2", "avx512f", "avx512_bf16", "amx_bf16")  # instructions that decide what is fast
QUIET_SHARE = 0.1  # of all cores, that others may use while we measure


def described() -> dict[str, object]:
    """Processor, cores, system and Python."""
    return {
        "cpu": processor().get("model name") or platform.processor() or platform.machine(),
        "cores": cores(),
        "vectors": [flag for flag in VECTORS if flag in processor().get("flags", "").split()],
        "system": platform.system(),
        "python": platform.python_version(),
    }


def processor() -> dict[str, str]:
    """What the system tells about its last core; nothing where it does not."""
    lines = CPUINFO.read_text("utf-8").splitlines() if CPUINFO.exists() else []
    return {k.strip(): v.strip() for k, _, v in (line.partition(":") for line in lines)}


def has_bf16() -> bool:
    """Whether the processor multiplies bf16 by itself."""
    return any("bf16" in flag for flag in processor().get("flags", "").split())


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def wait_until_quiet(patience: float) -> None:
    """Wait until others leave the cores alone; after a while measure all the same, and say so."""
    begin = time.monotonic()
    while busy_share() > QUIET_SHARE:
        if time.monotonic() - begin > patience:
            print("  (the machine is not quiet: figures may be low)", file=sys.stderr)
            return


def busy_share(seconds: float = 1.0) -> float:
    """Share of all cores in use over the next second; zero where the system does not tell."""
    before = ticks()
    time.sleep(seconds)
    return used(before, ticks())


class Others:
    """What others use of the cores while our own children work."""

    def __init__(self) -> None:
        self.began, self.before, self.ours = time.monotonic(), ticks(), children()

    def share(self) -> float:
        """Of all cores since this was made; children count once they have ended."""
        elapsed = max(time.monotonic() - self.began, 1e-9)
        own = (children() - self.ours) / (elapsed * (os.cpu_count() or 1))
        return max(0.0, used(self.before, ticks()) - own)


def ticks() -> tuple[int, int]:
    """Ticks of all cores since the machine started, and those of them that were idle."""
    if not STAT.exists():
        return 0, 0
    found = [int(x) for x in STAT.read_text("utf-8").splitlines()[0].split()[1:9]]
    return sum(found), found[3] + found[4]


def used(before: tuple[int, int], after: tuple[int, int]) -> float:
    """Share of the ticks between that were not idle."""
    passed, idle = after[0] - before[0], after[1] - before[1]
    return 1.0 - idle / passed if passed else 0.0


def children() -> float:
    """Processor seconds of the children that have ended."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime
