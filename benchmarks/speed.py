"""Speed beside other libraries, in one run on one machine.

    python -m benchmarks.speed WORK [--peers sb3,tianshou] [--repeats 3] [--seconds 20] [--quick]

Contenders run in turn, each in a process of its own and each peer in its own virtual environment,
while the machine is otherwise quiet. Prints medians, ranges and ratios; the last line is one JSON
object. A JSON and a PNG go to `benchmarks/results/`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import machine, summary
from benchmarks.peers import PEERS, python_of
from benchmarks.picture import draw
from benchmarks.works import LIMIT, NAMES, OURS, WORKS, Work

ROOT = Path(__file__).parent.parent
FULL = {"seconds": 20.0, "warm": 3.0, "patience": 60.0}
QUICK = {"repeats": 1, "seconds": 5.0, "warm": 1.0, "patience": 5.0}
RETRIES = 2  # of a run that others disturbed
GRACE = 600.0  # seconds that a job may take beyond what it measures
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")  # each library is to choose by itself


class Options(argparse.Namespace):
    """What to run."""

    work: str
    peers: list[str]
    repeats: int
    seconds: float
    warm: float
    patience: float
    quick: bool


def main(argv: Sequence[str] | None = None) -> None:
    """Run the contenders in turn and report."""
    options = arguments(argv)
    work = WORKS[options.work]
    contenders = [name for name in (OURS, *options.peers, LIMIT) if name in work.jobs]
    pythons = {name: python_of(name) for name in options.peers}
    runs: dict[str, list[summary.Run]] = {name: [] for name in contenders}
    print(work.title, flush=True)
    for repeat in range(options.repeats):
        for name in contenders:
            found = measure(options, name, pythons.get(name, Path(sys.executable)))
            runs[name].append(found)
            figure = f"{NAMES[name]:18} {summary.shown(found['value']):>9} {work.unit}"
            print(f"  {repeat + 1}/{options.repeats} {figure}{disturbance(found)}", flush=True)
    report(options, runs)


def arguments(argv: Sequence[str] | None = None) -> Options:
    """From the command line, checked."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.speed", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("work", choices=WORKS, metavar="WORK", help=", ".join(WORKS))
    parser.add_argument("--peers", help=f"comma-separated, of {', '.join(PEERS)}; '' for none")
    parser.add_argument("--repeats", type=int, help="of every contender, 3; 1 of sampler-scaling")
    parser.add_argument("--seconds", type=float, help="of each run after its warm-up, 20")
    parser.add_argument("--warm", type=float, help="seconds of warm-up, 3")
    parser.add_argument("--patience", type=float, help="seconds to wait for a quiet machine, 60")
    parser.add_argument("--quick", action="store_true", help="a minute's look in all")
    options = parser.parse_args(argv, namespace=Options())
    usual = QUICK if options.quick else {**FULL, "repeats": WORKS[options.work].repeats}
    for key, value in usual.items():
        if getattr(options, key) is None:
            setattr(options, key, value)
    if options.repeats < 1 or options.seconds <= 0:
        parser.error("--repeats must be at least 1, and --seconds above 0")
    options.peers = chosen(parser, options, WORKS[options.work])
    return options


def chosen(parser: argparse.ArgumentParser, options: Options, work: Work) -> list[str]:
    """The peers that are asked for, or the one that the work's aim is about."""
    able = [name for name in work.jobs if name in PEERS]
    if options.peers is None:
        return [work.against] if work.against in able else []
    names = [name.strip() for name in str(options.peers).split(",") if name.strip()]
    for name in names:
        if name not in PEERS:
            parser.error(f"--peers: unknown peer {name!r}; expected one of {', '.join(PEERS)}")
        if name not in able:
            parser.error(f"--peers: {name} cannot do {options.work}; expected {able or 'none'}")
    return names


def measure(options: Options, name: str, python: Path) -> summary.Run:
    """What one contender's job tells, the quietest of its tries."""
    tries: list[summary.Run] = []
    for _ in range(1 if options.quick else 1 + RETRIES):
        machine.wait_until_quiet(options.patience)
        others = machine.Others()
        found = run(options, name, python)
        share = 0.0 if WORKS[options.work].spawns else others.share()
        tries.append(found | {"others": round(share, 3)})
        if tries[-1]["others"] <= machine.QUIET_SHARE:
            break
    return min(tries, key=lambda found: float(found["others"]))


def disturbance(found: summary.Run) -> str:
    """What to say about a run that was not alone."""
    share = float(found["others"])
    return f"  (others used {share:.0%} of the cores)" if share > machine.QUIET_SHARE else ""


def run(options: Options, name: str, python: Path) -> summary.Run:
    """What a job tells, run once in a fresh process."""
    module = f"benchmarks.jobs.{WORKS[options.work].jobs[name]}"
    command = [str(python), "-m", module, options.work, name]
    command += ["--seconds", str(options.seconds), "--warm", str(options.warm)]
    environment = {k: v for k, v in os.environ.items() if k not in THREADS}
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=None if WORKS[options.work].talks else subprocess.PIPE,
            text=True,
            check=False,
            timeout=GRACE + 10 * options.seconds,
        )
    except subprocess.TimeoutExpired as error:
        raise SystemExit(f"{name}: {module} told nothing within {error.timeout:.0f} s") from None
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        raise SystemExit(f"{name}: {module} failed:\n{(done.stderr or '')[-4000:]}")
    told: dict[str, Any] = json.loads(lines[-1])
    return told


def report(options: Options, runs: summary.Runs) -> None:
    """Print the table and the closing line, and keep both."""
    closing = summary.closing(options.work, runs)
    asked = {key: getattr(options, key) for key in ("repeats", "seconds", "warm", "quick")}
    result = {**closing, **asked, "machine": machine.described(), "runs": runs}
    path = summary.write(options.work, result)
    draw(options.work, result, path.with_suffix(".png"))
    print(summary.table(options.work, runs))
    print(f"  {path} and {path.with_suffix('.png').name}", flush=True)
    print(json.dumps(closing), flush=True)


if __name__ == "__main__":
    main()
