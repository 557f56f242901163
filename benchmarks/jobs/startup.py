"""Seconds from a command to its first update, and to its exit, on CartPole-v1 with one update.

Measures `operant train` for Operant, a script of the same work for Stable-Baselines3, and as the
limit the import of torch and Gymnasium alone. Each is run once unmeasured, so that files are read
and bytecode is compiled, then as often as there is time, and the median counts.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.jobs.probe import arguments, tell

MOST = 5  # measured runs
STEPS = 256  # environment steps of the one update
FIRST = "first update at "
MODULES = {"operant": "startup_operant", "sb3": "startup_sb3", "limit": "startup_limit"}


def main() -> None:
    asked = arguments()
    module = f"benchmarks.jobs.{MODULES[asked.contender]}"
    once(module)
    begin, found = time.monotonic(), [once(module)]
    while len(found) < MOST and time.monotonic() - begin < asked.seconds:
        found.append(once(module))
    first, seconds = (median(times) for times in zip(*found, strict=True))
    tell(asked, first, sps=STEPS / first, seconds=seconds, first_update=first)


def once(module: str) -> tuple[float, float]:
    """Seconds to the first update and to the exit of one process."""
    # Bytecode is kept, as on a user's machine, even where this process may not.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = str(Path.cwd())
    with tempfile.TemporaryDirectory() as empty:
        begin = time.time()
        done = subprocess.run(
            [sys.executable, "-m", module],
            cwd=empty,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        end = time.time()
    told = [line for line in done.stdout.splitlines() if line.startswith(FIRST)]
    return float(told[0].removeprefix(FIRST)) - begin, end - begin


if __name__ == "__main__":
    main()
