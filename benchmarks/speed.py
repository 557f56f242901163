"""Speed beside other libraries, in one run on one machine.

    python -m benchmarks.speed ppo-cartpole [--quick] [--peers sb3] [--repeats 3] [--seconds 20]

Contenders run in turn, each in a process of its own, while the machine is otherwise quiet. Prints
medians, ranges and ratios; the last line is one JSON object. Results go to `benchmarks/results/`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.peers import PEERS, python_of

HERE = Path(__file__).parent
WORKS = {"ppo-cartpole": "PPO on CartPole-v1: 8 environments, 128 steps, 4 epochs of 4 minibatches"}
OURS, LIMIT = "operant", "limit"
QUIET_SHARE = 0.1  # of all cores, that others may use while we measure


def main() -> None:
    options = arguments()
    contenders = [OURS, *options.peers, LIMIT]
    found: dict[str, list[float]] = {name: [] for name in contenders}
    pythons = {peer: python_of(peer) for peer in options.peers}
    print(WORKS[options.work])
    for repeat in range(options.repeats):
        for name in contenders:
            python = pythons.get(name, Path(sys.executable))
            found[name].append(measure(options.work, name, python, options.seconds))
            print(f"  {repeat + 1}/{options.repeats} {name:8} {found[name][-1]:9,.0f} steps/s")
    report(options.work, found)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("work", choices=WORKS)
    parser.add_argument("--peers", default="sb3", help=f"comma-separated, of {', '.join(PEERS)}")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--quick", action="store_true", help="a minute's look")
    options = parser.parse_args()
    options.peers = [peer for peer in options.peers.split(",") if peer]
    unknown = [peer for peer in options.peers if peer not in PEERS]
    if unknown:
        parser.error(f"unknown peer {unknown[0]!r}; expected one of {', '.join(PEERS)}")
    if options.quick:
        options.repeats, options.seconds = 2, 6.0
    return options


def measure(work: str, name: str, python: Path, seconds: float) -> float:
    """Steps per second of one contender, run once in a fresh process."""
    wait_until_quiet()
    script = HERE / "jobs" / f"{name}_{work.replace('-', '_')}.py"
    command = [str(python), str(script), "--seconds", str(seconds)]
    if name in (OURS, LIMIT):
        command[1:2] = ["-m", f"benchmarks.jobs.{script.stem}"]
    done = subprocess.run(command, cwd=HERE.parent, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr}")
    return float(json.loads(done.stdout.strip().splitlines()[-1])["sps"])


def wait_until_quiet(patience: float = 60.0) -> None:
    """Wait until others leave the cores alone; after a while measure all the same, and say so."""
    begin = time.monotonic()
    while busy_share() > QUIET_SHARE:
        if time.monotonic() - begin > patience:
            print("  (the machine is not quiet: figures may be low)", file=sys.stderr)
            return


def busy_share() -> float:
    """Share of all cores in use over the next second; zero where the system does not tell."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return 0.0

    def times() -> tuple[int, int]:
        ticks = [int(x) for x in stat.read_text().splitlines()[0].split()[1:]]
        return sum(ticks), ticks[3] + ticks[4]

    (all_before, idle_before) = times()
    time.sleep(1.0)
    (all_after, idle_after) = times()
    return 1.0 - (idle_after - idle_before) / max(1, all_after - all_before)


def report(work: str, found: dict[str, list[float]]) -> None:
    """Print the table and the closing line, and keep both."""
    medians = {name: statistics.median(values) for name, values in found.items()}
    for name, values in found.items():
        span = f"({min(values):,.0f} to {max(values):,.0f})"
        print(f"{name:8} {medians[name]:9,.0f}  {span}  ×{medians[OURS] / medians[name]:.2f}")
    peers = {name: value for name, value in medians.items() if name not in (OURS, LIMIT)}
    best = max(peers, key=lambda name: peers[name], default=None)
    closing = {
        "work": work,
        "sps": round(medians[OURS], 1),
        "best_peer": best,
        "ratio": round(medians[OURS] / peers[best], 3) if best else None,
        "limit_fraction": round(medians[OURS] / medians[LIMIT], 3),
    }
    results = HERE / "results"
    results.mkdir(exist_ok=True)
    (results / f"{work}.json").write_text(json.dumps({**closing, "runs": found}, indent=1) + "\n")
    print(json.dumps(closing))


if __name__ == "__main__":
    main()
