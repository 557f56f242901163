"""Steps per second of every sampler over environments of several kinds, 1 to 512 of them.

Whole chunks are collected as in training, by a PPO with a small network; nothing is learned. Each
point takes about a second; where one chunk takes longer than that, one chunk.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from benchmarks.jobs.probe import arguments, tell
from benchmarks.jobs.slow_env import ID
from benchmarks.machine import cores
from operant.session.build import build
from operant.session.compose import compose
from operant.session.try_out import try_out

KINDS: dict[str, dict[str, Any]] = {
    "0 ms": {"ms": 0.0},
    "0.1 ms computing": {"ms": 0.1},
    "1 ms computing": {"ms": 1.0},
    "10 ms computing": {"ms": 10.0},
    "10 ms sleeping": {"ms": 10.0, "sleeps": True},
}
# A further sampler is one line: its name, and the settings that ask for it.
SAMPLERS: dict[str, dict[str, Any]] = {
    "serial": {"env": {"manager": "simple"}, "sampler": "serial"},
    "workers step": {"env": {"manager": "subproc"}, "sampler": "serial"},
    "workers act and step": {"sampler": "parallel"},
    "auto": {"sampler": "auto"},
}
SLEEPERS: dict[str, dict[str, Any]] = {  # only where more workers than cores make sense
    "32 workers step": {
        "env": {"manager": "subproc", "workers": 32},
        "sampler": "serial",
    },
}
ONE, CHOSEN = "serial", "auto"  # what the others are compared with, and what a user gets
COUNTS = [2**n for n in range(10)]
FEW = [1, 32]  # for a quick look
SHARE = 20  # of the seconds asked for, a point takes one in so many
LONG = 2.0  # seconds: a chunk that takes longer is counted even though it is the first
CHUNK = (1, 32)  # least and most steps of every environment in a chunk
HEADLINE = ("1 ms computing", 32)
Rates = dict[str, dict[int, float]]  # steps a second by sampler and number of environments


def main() -> None:
    asked = arguments()
    counts = COUNTS if asked.seconds >= 10 else FEW
    points = {kind: measured(kind, counts, asked.seconds / SHARE) for kind in KINDS}
    found = speedups(points)
    kind, count = HEADLINE
    best = max(by[count] for by in points[kind].values() if count in by)
    told = {"points": points, "speedups": found, "steadiness": steadiness(points)}
    fraction = round(found[kind] / cores(), 3)
    tell(asked, best, **told, best_peer=ONE, ratio=found[kind], limit_fraction=fraction)


def measured(kind: str, counts: Sequence[int], seconds: float) -> Rates:
    """Steps a second of every sampler, interleaved, over environments of one kind."""
    samplers = SAMPLERS | (SLEEPERS if "sleeping" in kind else {})
    rates: Rates = {name: {} for name in samplers}
    print(f"  {kind}: {', '.join(samplers)}", file=sys.stderr)
    for count in counts:
        each = KINDS[kind]["ms"] / 1e3 * count
        length = max(CHUNK[0], min(CHUNK[1], int(seconds / 4 / max(each, 1e-4))))
        for name, settings in samplers.items():
            env = settings.get("env", {}) | {"id": ID, "num_envs": count, "kwargs": KINDS[kind]}
            asked = {**settings, "env": env, "agent": {"length": length}}
            rates[name][count] = round(rate(asked, seconds), 2)
        shown = "".join(f"{rates[name][count]:13,.1f}" for name in samplers)
        print(f"  {count:5}{shown}", file=sys.stderr, flush=True)
    return rates


def rate(settings: dict[str, Any], seconds: float) -> float:
    """Steps a second of whole chunks, after one that is not counted."""
    config, _ = compose("ppo", settings, recipe="none")
    container = build(try_out(config))
    try:
        begin, steps, warm = time.perf_counter(), 0, True
        while steps == 0 or time.perf_counter() - begin < seconds:
            found = int(container.explorer.update().valid.sum())
            if warm and time.perf_counter() - begin < LONG:
                begin, warm = time.perf_counter(), False
                continue
            steps, warm = steps + found, False
        return steps / (time.perf_counter() - begin)
    finally:
        container.close()


def speedups(points: Mapping[str, Rates]) -> dict[str, float]:
    """How many times as fast as one process the best sampler is, by kind of environment.

    Computing: over the same number of environments, the median from two on. Sleeping: 32
    environments against one.
    """
    found = {}
    for kind, rates in points.items():
        others = [by for name, by in rates.items() if name != ONE]
        if "sleeping" in kind:
            found[kind] = max(by[32] for by in others) / rates[ONE][1]
        else:
            found[kind] = max(
                median(by[count] / rates[ONE][count] for count in by if count > 1) for by in others
            )
    return {kind: round(value, 3) for kind, value in found.items()}


def steadiness(points: Mapping[str, Rates]) -> dict[str, float]:
    """By kind, the worst that adding environments does to `auto`: 1 or more is no loss at all.

    The least ratio of a rate to the best rate of fewer environments.
    """
    found = {}
    for kind, rates in points.items():
        values = list(rates[CHOSEN].values())
        worst = min(b / max(values[: i + 1]) for i, b in enumerate(values[1:]))
        found[kind] = round(worst, 3)
    return found


if __name__ == "__main__":
    main()
