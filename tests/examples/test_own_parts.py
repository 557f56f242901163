"""Agents and networks outside of the package: trained, killed, resumed and shown by commands."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from running import only_run, trace

import operant

ROOT = Path(operant.__file__).parents[1]
EXAMPLES = ROOT / "examples"
MAX_LINES = 80
SHORT = (
    "train reinforce:Reinforce --env.num-envs 8 --agent.length 128 --steps 12288 --seed 3 --quiet "
    "--threads 1 --log-every 1024 --eval.episodes 2 --checkpoint.seconds 0.01 --checkpoint.share 9"
)


def start(line: str) -> subprocess.Popen[str]:
    """A command in a process of its own, in the directory of the examples."""
    words = [sys.executable, "-m", "operant", *line.split()]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    pipe = subprocess.PIPE
    return subprocess.Popen(words, cwd=EXAMPLES, env=env, stdout=pipe, stderr=pipe, text=True)


def done(line: str) -> str:
    """The output of a command that ends well."""
    process = start(line)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out


def test_reinforce_is_short() -> None:
    assert len((EXAMPLES / "reinforce.py").read_text().splitlines()) <= MAX_LINES


def killed(line: str, runs: Path) -> Path:
    """A run that was killed once it had written some checkpoints."""
    process = start(f"{line} --runs {runs}")
    until = time.monotonic() + 200
    while len(list(runs.glob("*/checkpoints/*"))) < 3 and process.poll() is None:
        assert time.monotonic() < until
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    return only_run(runs)


def test_reinforce_killed_and_resumed_ends_as_if_never_killed(tmp_path: Path) -> None:
    done(f"{SHORT} --runs {tmp_path / 'whole'}")
    run = killed(SHORT, tmp_path / "cut")
    assert not (run / "done.json").exists()
    done(f"resume {run} --quiet")
    assert trace(run) == trace(only_run(tmp_path / "whole"))
    assert "over 3 episodes" in done(f"eval {run} --episodes 3")
    video = tmp_path / "play.gif"
    assert "return " in done(f"play {run} --record {video}")
    assert video.stat().st_size > 1_000


@pytest.mark.slow
def test_reinforce_learns(tmp_path: Path) -> None:
    line = "train reinforce:Reinforce --env.num-envs 8 --steps 60_000 --quiet --threads 1"
    done(f"{line} --eval.every none --runs {tmp_path}")
    found = json.loads(done(f"eval {only_run(tmp_path)} --episodes 20 --json"))
    assert found["eval/mean_reward"] > 100  # by chance it is 22


@pytest.mark.parametrize("agent", ["ppo", "dqn"])
def test_the_network_trains(agent: str, tmp_path: Path) -> None:
    line = f"train {agent} --network own_network:Residual --network.width 8 --steps 600 --quiet"
    done(f"{line} --eval.episodes 1 --runs {tmp_path}")
    assert "over 1 episodes" in done(f"eval {only_run(tmp_path)} --episodes 1")
