"""Scores beside Stable-Baselines3: equal steps and environments, defaults beside defaults.

    python -m benchmarks.score SUITE [--seeds 3] [--only TEXT] [--contenders operant,sb3] [--jobs 2]

Every run is a process of its own with one thread. Results are lines of JSON in
`benchmarks/results/score-SUITE.jsonl`; what is there already is not run again, so a suite that was
stopped goes on. Prints a table of interquartile means and ranges over seeds, and puts it into
`docs/scores.md` with a picture.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from benchmarks.peers import python_of
from benchmarks.score_page import Key, Line, key_of, publish, table
from benchmarks.suites import CONTENDERS, SUITES

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"
LIMIT = 7_200.0  # seconds of one run


def main(argv: Sequence[str] | None = None) -> None:
    """Run what is missing, and report."""
    options = arguments(argv)
    path = RESULTS / f"score-{options.suite}.jsonl"
    lines = read(path)
    wanted = list(keys(options))
    missing = [key for key in wanted if key not in {key_of(line) for line in lines}]
    pythons = {name: python_for(name) for name in {contender for _, contender, _ in missing}}
    print(f"{len(wanted)} runs, {len(missing)} of them missing", flush=True)
    failed = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        runs = [pool.submit(run, key, pythons[key[1]]) for key in missing]
        for done, future in enumerate(as_completed(runs), 1):
            try:
                line = future.result()
            except (RuntimeError, subprocess.TimeoutExpired) as error:  # the others go on
                failed += 1
                print(f"  {done}/{len(missing)} {error}", file=sys.stderr, flush=True)
                continue
            lines.append(line)
            append(path, line)
            told = line.get("score", line.get("skipped"))
            print(f"  {done}/{len(missing)} {title(line)}: {told}", flush=True)
    print(table(options.suite, lines))
    print(f"{publish(options.suite, lines)}: written")
    if failed:
        sys.exit(f"{failed} runs failed; the same command repeats them")


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """From the command line."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.score", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("suite", choices=SUITES, metavar="SUITE", help=", ".join(SUITES))
    parser.add_argument("--seeds", type=int, default=3, help="runs of every contender, 3")
    parser.add_argument("--only", default="", help="tasks whose environment or agent has this text")
    parser.add_argument("--contenders", default=",".join(CONTENDERS), help="comma-separated")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time, 2")
    options = parser.parse_args(argv)
    unknown = set(options.contenders.split(",")) - CONTENDERS.keys()
    if unknown:
        parser.error(f"--contenders {unknown.pop()}: expected some of {', '.join(CONTENDERS)}")
    return options


def keys(options: argparse.Namespace) -> Iterator[Key]:
    """Every run that the options ask for, seed by seed, so that a part of a suite says most."""
    chosen = [t for t in SUITES[options.suite] if options.only in f"{t.env} {t.agent}"]
    for seed in range(1, options.seeds + 1):
        for task in chosen:
            yield from ((task, name, seed) for name in options.contenders.split(","))


def run(key: Key, python: Path) -> Line:
    """Train and evaluate in a process of its own."""
    task, contender, seed = key
    module = "operant_score" if contender.startswith("operant") else "sb3_score"
    given = [task.env, task.agent, task.steps, task.num_envs, seed, contender]
    command = [str(python), "-m", f"benchmarks.jobs.{module}", *map(str, given)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    options: dict[str, Any] = {"cwd": ROOT, "env": environment, "timeout": LIMIT}
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-3000:]}")
    found = json.loads(done.stdout.strip().splitlines()[-1])
    about = {**task._asdict(), "num_envs": task.num_envs, "contender": contender, "seed": seed}
    return about | {name: found[name] for name in ("score", "skipped") if name in found}


def python_for(contender: str) -> Path:
    """The interpreter that runs a contender."""
    return Path(sys.executable) if contender.startswith("operant") else python_of(contender)


def read(path: Path) -> list[Line]:
    """Results so far."""
    text = path.read_text("utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


def append(path: Path, line: Line) -> None:
    """One more result."""
    path.parent.mkdir(exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def title(line: Line) -> str:
    """A run in a few words."""
    return f"{line['contender']} {line['agent']} {line['env']} seed {line['seed']}"


if __name__ == "__main__":
    main()
