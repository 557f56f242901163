"""Children of environments, crashes on trial, and killed programs leave nothing waiting or behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import faulty
import pytest
from faulty import actions

from operant.core.errors import EnvironmentFault
from operant.envs.managers.subproc import SubProcEnvManager
from operant.envs.providers.gymnasium import GymEnv

CHILD_SECONDS = 60  # that the child of an environment lives


class Parent(faulty.FaultEnv):
    """Has a child that holds all its pipes, and is then killed; `at` 0: while it is built."""

    def __init__(self, note: str, at: int) -> None:
        super().__init__()
        self.note, self.at = Path(note), at
        self.end(0)

    def step(self, action: object) -> tuple[object, object, bool, bool, dict[str, object]]:
        self.end(self.t + 1)
        return super().step(action)

    def end(self, t: int) -> None:
        if t != self.at or self.note.exists():
            return
        child = os.fork()
        if child == 0:
            time.sleep(CHILD_SECONDS)
            os._exit(0)
        self.note.write_text(str(child))
        os.kill(os.getpid(), signal.SIGKILL)


def parent(note: str, at: int) -> GymEnv:
    return GymEnv(Parent(note, at), 0)


def test_the_death_of_a_worker_is_noticed_while_its_children_live(tmp_path: Path) -> None:
    note = tmp_path / "child"
    manager = SubProcEnvManager([partial(parent, str(note), 2)], step_timeout=40)
    manager.reset(0)
    manager.step(actions(1))
    begin = time.monotonic()
    with pytest.warns(UserWarning, match="died"):
        assert manager.step(actions(1)).valid.tolist() == [False]
    assert time.monotonic() - begin < 20
    manager.close()
    os.kill(int(note.read_text()), signal.SIGKILL)


def test_so_is_a_death_while_it_starts(tmp_path: Path) -> None:
    note, begin = tmp_path / "child", time.monotonic()
    with pytest.raises(EnvironmentFault, match="died while starting"):
        SubProcEnvManager([partial(parent, str(note), 0)])
    assert time.monotonic() - begin < 20
    os.kill(int(note.read_text()), signal.SIGKILL)


@pytest.mark.parametrize("mode", ["segv", "exit", "throw"])
def test_a_crash_on_trial_makes_the_run_inexact_and_does_not_end_it(mode: str) -> None:
    manager = SubProcEnvManager(faulty.fns(2, 0, mode=mode, at=3), workers=2)
    assert manager.exact is False
    assert manager.restarts == 0
    assert manager.reset(0)["observation"].shape == (2, 2)
    manager.close()
    assert not multiprocessing.active_children()


def test_an_environment_that_can_be_resumed_is_found_to_be_exact() -> None:
    manager = SubProcEnvManager(faulty.fns(2, -1), workers=2)
    assert manager.exact is True
    manager.close()


KILLED = """
import os, signal, sys
sys.path[:0] = {paths!r}
import faulty
from operant.envs.managers.subproc import SubProcEnvManager
manager = SubProcEnvManager(faulty.fns(2, -1), workers=2)
manager.reset(0)
{end}
"""
PATHS = [str(Path(faulty.__file__).parents[i]) for i in range(2)]


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), signal.SIGKILL)", "manager.close()", ""])
def test_no_temporary_directory_is_left_by_a_program_that_is_killed(
    end: str, tmp_path: Path
) -> None:
    code = KILLED.format(paths=PATHS, end=end)
    known = {**os.environ, "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], env=known, timeout=120, check=False)
    until = time.monotonic() + 20
    while list(tmp_path.iterdir()) and time.monotonic() < until:
        time.sleep(0.05)
    assert list(tmp_path.iterdir()) == []
