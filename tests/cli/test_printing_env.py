"""What an environment prints does not get into JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

LOUD = """
import ctypes, os
from gymnasium.envs.classic_control import CartPoleEnv

class Loud(CartPoleEnv):
    def step(self, action):
        print("python")
        os.system("echo shell")
        ctypes.CDLL(None).puts(b"library")
        return super().step(action)
"""
SMALL = "--env.id loud:Loud --env.time-limit 5 --steps 10 --eval.episodes 1 --name x --quiet"


def operant(where: Path, line: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "operant", *line.split()]
    known = {**os.environ, "PYTHONPATH": os.pathsep.join([str(where), *sys.path])}
    return subprocess.run(
        command, cwd=where, env=known, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.every(2)
@pytest.mark.parametrize("sampler", ["serial", "parallel"])
def test_eval_json_is_one_object_whatever_the_environment_prints(
    sampler: str, tmp_path: Path
) -> None:
    (tmp_path / "loud.py").write_text(LOUD)
    made = operant(tmp_path, f"train a2c {SMALL} --sampler {sampler} --env.workers 1")
    assert made.returncode == 0, made.stderr
    done = operant(tmp_path, "eval x --json --episodes 2")
    assert json.loads(done.stdout)["eval/episodes"] == 2
    assert {"python", "shell", "library"} <= set(done.stderr.split())


def test_check_env_json_is_one_object_whatever_the_environment_prints(tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text(LOUD)
    done = operant(tmp_path, "check-env loud:Loud --json --steps 5")
    assert json.loads(done.stdout)["steps"] == 5
    assert "shell" in done.stderr
