"""Errors of workers reach the terminal once, and starting is safe however busy the machine is."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from operant.envs.managers import env_worker
from operant.envs.providers.gymnasium import GymEnv
from operant.processes.process import WorkerProcess

SUBPROC = """
from operant.envs.env_settings import EnvConfig
from operant.envs.managers.choose import make_manager
kwargs = {"wind": 1}
for _ in range(2):
    try:
        make_manager(EnvConfig(num_envs=6, manager="subproc", workers=6, kwargs=kwargs), 0)
    except Exception as error:
        print(error)
"""
PARALLEL = """
import operant
for _ in range(2):
    try:
        operant.train(
            "ppo", "CartPole-v1", steps=512, decorrelate=5, sampler="parallel",
            env={"manager": "native", "workers": 4, "num_envs": 4}, runs=RUNS,
        )
    except Exception as error:
        print(error)
"""


def cartpole() -> GymEnv:
    return GymEnv("CartPole-v1")


@pytest.mark.parametrize(
    ("script", "message"), [(SUBPROC, "cannot be made with its kwargs"), (PARALLEL, "decorrelate")]
)
def test_a_usage_error_of_workers_is_one_error_in_the_parent(
    script: str, message: str, tmp_path: object
) -> None:
    code = script.replace("RUNS", repr(str(tmp_path)))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.count(message) == 2
    assert "Traceback" not in done.stderr


def test_what_arrives_late_on_the_starting_pipe_kills_no_worker() -> None:
    """A busy kernel may tell of the data that started a worker when that is at work already."""
    made = WorkerProcess(env_worker.serve, [cartpole], (0, 1), "environment 0")
    made.wait_ready()
    starting: Any = made.process
    os.write(starting._popen.finalizer._args[0], b"x")
    made.process.join(0.3)
    assert made.process.exitcode is None
    made.kill()


def test_many_workers_start_under_load() -> None:
    load = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
    workers = []
    try:
        for _ in range(16):
            made = WorkerProcess(env_worker.serve, [cartpole], (0, 1), "environment 0")
            workers.append(made)
        assert all(one.wait_ready() for one in workers)
    finally:
        for one in workers:
            one.kill()
        for process in load:
            process.kill()
            process.wait()
