"""Nothing waits for children of a dead environment, and a killed program leaves nothing behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import crashing
import numpy as np
import pytest

from operant.core.errors import EnvironmentFault
from operant.envs.managers.subproc import SubProcEnvManager

ACTIONS = {"action": np.zeros(1, np.int64)}
KILL, SEGV = int(signal.SIGKILL), int(signal.SIGSEGV)


def test_the_death_of_a_worker_is_noticed_while_its_children_live(tmp_path: Path) -> None:
    note = tmp_path / "child"
    manager = SubProcEnvManager(
        [partial(crashing.make, number=KILL, at=2, child=str(note))], step_timeout=40
    )
    manager.reset(0)
    manager.step(ACTIONS)
    begin = time.monotonic()
    with pytest.warns(UserWarning, match="died"):
        assert manager.step(ACTIONS).valid.tolist() == [False]
    assert time.monotonic() - begin < 20
    manager.close()
    os.kill(int(note.read_text()), signal.SIGKILL)


def test_so_is_a_death_while_it_starts(tmp_path: Path) -> None:
    note, begin = tmp_path / "child", time.monotonic()
    with pytest.raises(EnvironmentFault, match="died while starting"):
        SubProcEnvManager([partial(crashing.make, number=KILL, at=0, child=str(note))])
    assert time.monotonic() - begin < 20
    os.kill(int(note.read_text()), signal.SIGKILL)


@pytest.mark.parametrize("number", [KILL, SEGV])
def test_a_crash_on_trial_makes_the_run_inexact_and_does_not_end_it(number: int) -> None:
    manager = SubProcEnvManager([partial(crashing.make, number=number)])
    assert (manager.exact, manager.restarts) == (False, 0)
    assert manager.reset(0)["observation"].shape == (1, 2)
    assert manager.step(ACTIONS).valid.tolist() == [True]
    manager.close()
    assert not multiprocessing.active_children()


def test_an_environment_that_can_be_resumed_is_found_to_be_exact_elsewhere() -> None:
    manager = SubProcEnvManager([crashing.make])
    assert manager.exact is True
    manager.close()


KILLED = """
import os, signal, sys
sys.path.insert(0, {path!r})
import crashing
from operant.envs.managers.subproc import SubProcEnvManager
manager = SubProcEnvManager([crashing.make] * 2, workers=2)
manager.reset(0)
{end}
"""


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), signal.SIGKILL)", "manager.close()", ""])
def test_no_temporary_directory_is_left_by_a_program_that_is_killed(
    end: str, tmp_path: Path
) -> None:
    code = KILLED.format(path=str(Path(crashing.__file__).parent), end=end)
    known = {**os.environ, "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], env=known, timeout=120, check=False)
    until = time.monotonic() + 20
    while list(tmp_path.iterdir()) and time.monotonic() < until:
        time.sleep(0.05)
    assert list(tmp_path.iterdir()) == []
