"""Runs that are killed without warning, in every phase and at random moments."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from running import AGENTS, OFTEN, ForkServer, only_run, trace, train

DURABLE = "operant.core.durable"
PHASES = {
    "while its directory is made": (f"{DURABLE}:Durable.rename", 2),
    "before its first checkpoint": ("operant.session.runner:build", 1),
    "while its first checkpoint is written": (
        f"{DURABLE}:Durable.write",
        4,
    ),
    "before a checkpoint takes its name": (f"{DURABLE}:Durable.rename", 2),
    "while environments step": ("operant.samplers.explorer:Explorer.update", 9),
    "while it learns": ("operant.agents.optimizer:Optimizer.apply", 15),
    "while it writes a checkpoint": (f"{DURABLE}:Durable.write", 5),
    "between two lines of the log": ("operant.session.log:MetricLog.write", 2),
    "while it removes an old checkpoint": (f"{DURABLE}:Durable.remove", 2),
    "while it plays an evaluation": ("operant.samplers.evaluate:TrajTracker", 1),
    "before an evaluation is logged": ("operant.session.runner:summary", 1),
    "before it is marked as done": ("operant.session.session:Session.finish", 1),
}


@pytest.fixture(scope="module")
def fork_server() -> Iterator[ForkServer]:
    with ForkServer() as found:
        yield found


def begin_or_resume(runs: Path, line: str) -> str:
    """The command that goes on with the run of `runs`, or begins it."""
    begun = runs.is_dir() and any((run / "config.yaml").exists() for run in runs.iterdir())
    return f"resume --quiet --runs {runs}" if begun else f"{line} {OFTEN} --runs {runs}"


def unharmed(fork_server: ForkServer, line: str, runs: Path) -> tuple[bytes, str]:
    """The trace of a run that nobody kills."""
    fork_server.start(begin_or_resume(runs, line))
    assert fork_server.wait() == 0
    return trace(only_run(runs))


def begun(runs: Path) -> Path:
    """The one run that came as far as having a configuration."""
    (run,) = [run for run in runs.iterdir() if (run / "config.yaml").exists()]
    return run


def test_a_run_killed_in_every_phase_ends_as_if_never_killed(
    tmp_path: Path, fork_server: ForkServer
) -> None:
    whole = unharmed(fork_server, AGENTS["dqn"], tmp_path / "whole")
    runs, codes = tmp_path / "cut", {}
    for phase, kill_at in PHASES.items():
        fork_server.start(begin_or_resume(runs, AGENTS["dqn"]), kill_at)
        codes[phase] = fork_server.wait()
    assert codes == dict.fromkeys(PHASES, -signal.SIGKILL)
    fork_server.start(begin_or_resume(runs, AGENTS["dqn"]))
    assert fork_server.wait() == 0
    assert trace(begun(runs)) == whole


def test_a_run_killed_after_its_end_is_finished(tmp_path: Path, fork_server: ForkServer) -> None:
    line = f"train a2c --steps 20 {OFTEN} --runs {tmp_path}"
    fork_server.start(line, ("operant.report.plot:plot_runs", 1))
    assert fork_server.wait() == -signal.SIGKILL
    done = trace(only_run(tmp_path))
    fork_server.start(f"resume {only_run(tmp_path)}")
    assert fork_server.wait() == 0
    assert trace(only_run(tmp_path)) == done


@pytest.mark.every(3)
@pytest.mark.parametrize(("name", "steps"), [("a2c", 1500), ("ppo", 1500), ("sac", 400)])
def test_a_run_killed_five_times_at_random_ends_as_if_never_killed(
    name: str, steps: int, tmp_path: Path, fork_server: ForkServer
) -> None:
    line, moments, runs = f"{AGENTS[name]} --steps {steps}", random.Random(5), tmp_path / "cut"
    whole = unharmed(fork_server, line, tmp_path / "whole")
    for _ in range(5):
        pid = fork_server.start(begin_or_resume(runs, line))
        time.sleep(moments.uniform(0.0, 0.2))
        os.kill(pid, signal.SIGKILL)
        assert fork_server.wait() == -signal.SIGKILL
    fork_server.start(begin_or_resume(runs, line))
    assert fork_server.wait() == 0
    assert trace(begun(runs)) == whole


def wait_for_progress(runs: Path, process: subprocess.Popen[bytes]) -> None:
    """Wait until the process has written a checkpoint of its own."""
    before = set(runs.glob("*/checkpoints/ckpt-*"))
    while process.poll() is None and set(runs.glob("*/checkpoints/ckpt-*")) <= before:
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("name", "steps"), [("a2c", 12000), ("ppo", 12000), ("dqn", 12000), ("sac", 4000)]
)
def test_a_run_killed_twenty_times_ends_as_if_never_killed(
    name: str, steps: int, tmp_path: Path
) -> None:
    line, moments, runs = f"{AGENTS[name]} --steps {steps}", random.Random(20), tmp_path / "cut"
    whole, codes = trace(train(line, tmp_path / "whole")), []
    for kill in range(20):
        command = [sys.executable, "-m", "operant", *begin_or_resume(runs, line).split()]
        process = subprocess.Popen(command)
        if kill % 4:  # every fourth is killed wherever it is, most likely before it trains
            wait_for_progress(runs, process)
        time.sleep(moments.uniform(0.0, 0.4 if kill % 4 else 4.0))
        process.kill()
        codes.append(process.wait())
    assert codes == [-signal.SIGKILL] * 20
    last = subprocess.run([*command[:3], *begin_or_resume(runs, line).split()], check=False)
    assert (last.returncode, trace(begun(runs))) == (0, whole)
