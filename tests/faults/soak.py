"""Trains for a long time under each sampler, and measures whether anything grows.

`python tests/faults/soak.py serial parallel alternating async --minutes 30` trains with these at
the same time and writes the figures to `tests/faults/soak.json`, from which `scenarios.py` makes a
table of the documentation.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil
from leftovers import running

RESULT = Path(__file__).with_name("soak.json")
TRAIN = (
    "train ppo --env.id CartPole-v1 --recipe none --env.num-envs 4 --agent.length 32 --seed 3 "
    "--agent.minibatch 64 --agent.epochs 2 --network.hidden 16 --threads 1 --compile off "
    "--steps 1e12 --log-every 2000 --eval.every 20000 --eval.episodes 4 --checkpoint.seconds 5 "
    "--quiet"
)
SAMPLERS = {
    "serial": "--sampler serial --env.manager simple",
    "parallel": "--sampler parallel --env.workers 2",
    "alternating": "--sampler alternating --env.manager subproc --env.workers 2",
    "async": "--sampler async --env.workers 2",
}
ENDING = 300.0  # seconds after SIGTERM; one is plenty unless others have the machine
WARM_UP = 0.2  # share of the time that is not counted: caches fill, and Python imports late
GROWTH = 8.0  # MiB by which memory may differ at the end: the collector of garbage comes and goes
SHARED = re.compile(r"(/memfd:|/dev/shm/|/dev/zero)")


class Sample(NamedTuple):
    """A run and all its processes at one moment."""

    seconds: float
    memory: float  # MiB, of which shared pages count in parts: PSS
    descriptors: int
    threads: int
    processes: int
    shared: int  # mappings of shared memory
    files: int  # in its directory for temporary files


def look(process: psutil.Process, temporary: Path, began: float) -> Sample | None:
    """Measure; None if a process ended meanwhile."""
    try:
        tree = [process, *process.children(recursive=True)]
        memory = sum(one.memory_full_info().pss for one in tree) / 2**20
        counts = (sum(one.num_fds() for one in tree), sum(one.num_threads() for one in tree))
        maps = [Path(f"/proc/{one.pid}/maps").read_text().splitlines() for one in tree]
    except (psutil.Error, OSError):
        return None
    shared = sum(bool(SHARED.search(line)) for lines in maps for line in lines)
    files = sum(1 for _ in temporary.rglob("*"))
    return Sample(time.monotonic() - began, memory, *counts, len(tree), shared, files)


class Soak:
    """One run under one sampler, from its start to SIGTERM."""

    def __init__(self, sampler: str, directory: Path) -> None:
        self.sampler, self.runs = sampler, directory / "runs"
        self.temporary = directory / "tmp"
        self.temporary.mkdir(parents=True)
        threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        env = {**os.environ, **threads, "TMPDIR": str(self.temporary)}
        words = [*TRAIN.split(), *SAMPLERS[sampler].split(), "--runs", str(self.runs)]
        self.popen = subprocess.Popen([sys.executable, "-m", "operant", *words], env=env)
        self.process = psutil.Process(self.popen.pid)
        self.samples: list[Sample] = []
        self.began = 0.0

    def wait(self) -> None:
        """Until it trains."""
        while self.popen.poll() is None and not self._steps():
            time.sleep(0.5)
        self.began = time.monotonic()

    def look(self) -> None:
        sample = look(self.process, self.temporary, self.began)
        self.samples += [sample] if sample else []

    def end(self) -> dict[str, Any]:
        """Stop the run; what was measured."""
        tree = [self.process, *self.process.children(recursive=True)]
        self.popen.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self.popen.wait(ENDING)
        alive = running(tree[1:], 20)
        self.popen.kill()
        left = sum(1 for _ in self.temporary.rglob("*"))
        found = {"sampler": self.sampler, "code": self.popen.wait(), "steps": self._steps()}
        return found | figures(self.samples) | {"processes left": len(alive), "files left": left}

    def _steps(self) -> int:
        logs = sorted(self.runs.glob("*/metrics.jsonl"))
        lines = logs[0].read_text().splitlines() if logs else []
        return int(json.loads(lines[-1])["step"]) if lines else 0


def figures(samples: list[Sample]) -> dict[str, Any]:
    """The slope of memory and of each count per hour, after the start, and their levels."""
    kept = [one for one in samples if one.seconds >= WARM_UP * samples[-1].seconds]
    seconds, *columns = np.array(kept, float).T
    hours = seconds / 3600
    found: dict[str, Any] = {"minutes": round(samples[-1].seconds / 60, 1), "samples": len(kept)}
    for name, x in zip(Sample._fields[1:], columns, strict=True):
        quarter = max(1, len(x) // 4)
        ends = [float(np.median(part)) for part in (x[:quarter], x[-quarter:])]
        slope = float(np.polyfit(hours, x, 1)[0]) if len(x) > 1 else 0.0
        first, last = (round(end, 2) for end in ends)
        found[name] = {"first": first, "last": last, "slope": round(slope, 3)}
    return found


def flat(found: dict[str, Any]) -> bool:
    """Whether memory stayed within a few MiB and nothing that is counted has grown."""
    counted = ("descriptors", "threads", "processes", "shared", "files")
    grown = [name for name in counted if found[name]["last"] > found[name]["first"]]
    ended = found["code"] == 128 + signal.SIGTERM and not found["processes left"]
    return ended and not grown and found["memory"]["last"] - found["memory"]["first"] < GROWTH


def soak(samplers: list[str], minutes: float, every: float = 5.0) -> list[dict[str, Any]]:
    """Train under these samplers at the same time; the figures of each."""
    with tempfile.TemporaryDirectory(prefix="soak-") as directory:
        runs = [Soak(name, Path(directory) / name) for name in samplers]
        try:
            for run in runs:
                run.wait()
            end = time.monotonic() + 60 * minutes
            while time.monotonic() < end:
                time.sleep(every)
                for run in runs:
                    run.look()
            return [run.end() for run in runs]
        finally:
            for run in runs:
                run.popen.kill()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("samplers", nargs="+", choices=list(SAMPLERS))
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--out", type=Path, default=RESULT)
    given = parser.parse_args()
    measured = soak(given.samplers, given.minutes)
    given.out.write_text(json.dumps(measured, indent=1) + "\n")
    for one in measured:
        print("flat" if flat(one) else "NOT FLAT", json.dumps(one))
