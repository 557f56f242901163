"""Workers that die, hang or throw: seen, named, replaced, and never left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import faulty
import numpy as np
import psutil
import pytest
from faulty import actions, fns

from operant.core.errors import EnvironmentFault, UsageError
from operant.envs.managers.simple import SimpleEnvManager
from operant.envs.managers.subproc import SubProcEnvManager

pytestmark = pytest.mark.usefixtures("nothing_left_behind")


def play(manager: SubProcEnvManager | SimpleEnvManager, steps: int = 4) -> None:
    try:
        manager.reset(0)
        for _ in range(steps):
            manager.step(actions(manager.num_envs))
    finally:
        manager.close()


@pytest.mark.parametrize(
    ("mode", "ending"),
    [
        ("kill", "killed by SIGKILL, perhaps out of memory"),
        ("segfault", "killed by SIGSEGV"),
        ("exit", "exit code 7"),
    ],
)
def test_a_worker_that_dies_is_replaced_and_its_rows_count_for_nothing(
    mode: str, ending: str, tmp_path: Path
) -> None:
    manager = SubProcEnvManager(
        fns(3, 1, mode=mode, times=1, record=str(tmp_path / "x")), workers=3
    )
    manager.reset(0)
    manager.step(actions(3))
    manager.step(actions(3))
    with pytest.warns(UserWarning, match=rf"worker of environments 1: died \({ending}"):
        step = manager.step(actions(3))
    assert step.valid.tolist() == [True, False, True]
    assert step.truncated.tolist() == [False, True, False]
    assert step.reward.tolist() == [1, 0, 1]
    assert step.observation["observation"][:, 0] == pytest.approx([0.03, 0, 0.03])
    assert step.infos["env_restarts"] == 1
    assert all(manager.step(actions(3)).valid.all() for _ in range(6))
    manager.close()


@pytest.mark.parametrize("mode", ["hang", "stop"])
def test_a_worker_that_hangs_is_killed_and_replaced(mode: str, tmp_path: Path) -> None:
    bad = fns(4, 3, mode=mode, times=1, record=str(tmp_path / "x"))
    manager = SubProcEnvManager(bad, workers=2, step_timeout=0.5)
    manager.reset(0)
    with pytest.warns(UserWarning, match="worker of environments 2-3: hung for 0.5 s"):
        valid = [manager.step(actions(4)).valid.tolist() for _ in range(4)]
    manager.close()
    assert valid[2] == [True, True, False, False]
    assert valid[3] == [True] * 4


def test_a_hung_worker_says_where_it_stands() -> None:
    manager = SubProcEnvManager(fns(1, 0, mode="hang"), step_timeout=0.5, max_restarts=0)
    with pytest.raises(
        EnvironmentFault, match=r"hung for 0\.5 s, after max_restarts = 0"
    ) as caught:
        play(manager)
    assert "fault_env.py" in caught.value.__notes__[0]


@pytest.mark.filterwarnings("ignore:worker of")
def test_a_worker_that_dies_again_and_again_ends_the_run() -> None:
    manager = SubProcEnvManager(fns(2, 0, mode="kill", at=1), workers=1, max_restarts=2)
    with pytest.raises(EnvironmentFault, match=r"environments 0-1: died.*max_restarts = 2"):
        play(manager, 5)
    assert manager.restarts == 2


def test_an_environment_that_throws_stops_the_run_with_its_traceback() -> None:
    manager = SubProcEnvManager(fns(3, 2, mode="throw"), workers=2)
    with pytest.raises(
        EnvironmentFault, match="environment 2, step 3: step raised RuntimeError"
    ) as caught:
        play(manager)
    assert "the simulator broke" in caught.value.__notes__[0]
    assert "in throw" in caught.value.__notes__[0]


@pytest.mark.parametrize("mode", ["nan", "shape", "none", "reward nan"])
@pytest.mark.parametrize("manager", [SimpleEnvManager, SubProcEnvManager])
def test_a_broken_contract_is_named_by_every_manager(
    mode: str, manager: type[SimpleEnvManager | SubProcEnvManager]
) -> None:
    with pytest.raises(EnvironmentFault, match="Steady, environment 1, step 3"):
        play(manager(fns(2, 1, mode=mode)))


@pytest.mark.parametrize("manager", [SimpleEnvManager, SubProcEnvManager])
def test_an_environment_that_cannot_be_built_is_an_error_at_once(
    manager: type[SimpleEnvManager | SubProcEnvManager],
) -> None:
    with pytest.raises((EnvironmentFault, RuntimeError), match="the simulator broke"):
        manager(fns(2, 1, mode="throw", place="construct"))


def test_closing_does_not_wait_for_a_stopped_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("operant.processes.process.CLOSE_TIMEOUT", 0.3)
    manager = SubProcEnvManager(fns(2, 0), workers=2)
    os.kill(manager.workers[0].process.pid or 0, signal.SIGSTOP)
    began = time.monotonic()
    manager.close()
    assert time.monotonic() - began < 2


def test_environments_that_cannot_be_sent_are_refused() -> None:
    with pytest.raises(UsageError, match="cannot be sent to a worker process"):
        SubProcEnvManager([lambda: faulty.make(0)])


def test_new_episodes_after_a_restart_have_new_seeds(tmp_path: Path) -> None:
    manager = SubProcEnvManager(fns(2, 0, mode="kill", times=1, record=str(tmp_path / "x")), seed=3)
    manager.reset(3)
    manager.step(actions(2))
    manager.step(actions(2))
    with pytest.warns(UserWarning, match="restarted"):
        manager.step(actions(2))
    seeds = manager.buffers.seed.copy()
    manager.close()
    assert seeds[0] > 1000
    assert seeds[1] == 4


HERE = Path(__file__).parent
PATHS = [str(HERE), str(HERE.parent), str(HERE.parent / "faults")]  # of what `faulty` imports
ORPHANS = """
import os, sys
sys.path[:0] = {paths!r}
import faulty
from operant.envs.managers.subproc import SubProcEnvManager
manager = SubProcEnvManager(faulty.fns(2, 0, mode="hang", at=1), workers=2)
manager.reset(0)
print(*(one.process.pid for one in manager.workers), flush=True)
manager.step(faulty.actions(2))
"""


def test_no_worker_outlives_a_killed_parent_even_in_the_middle_of_a_step() -> None:
    code = ORPHANS.format(paths=PATHS)
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    workers = [int(pid) for pid in parent.stdout.readline().split()]
    time.sleep(0.2)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    _, alive = psutil.wait_procs([psutil.Process(p) for p in workers if psutil.pid_exists(p)], 2)
    assert len(workers) == 2
    # Nobody may be there to reap an orphan; it is dead all the same.
    assert not [x for x in alive if x.status() != psutil.STATUS_ZOMBIE]


def test_a_program_that_forgets_to_close_still_ends() -> None:
    code = ORPHANS.format(paths=PATHS).replace('mode="hang"', 'mode=""')
    done = subprocess.run([sys.executable, "-c", code], timeout=60, capture_output=True, check=True)
    assert done.stderr == b""


def test_workers_do_without_torch() -> None:
    modules = "operant.envs.managers.env_worker, operant.envs.providers.gymnasium, operant.envs"
    code = f"import sys, {modules}; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_every_environment_is_seeded_with_the_seed_and_its_index() -> None:
    manager = SubProcEnvManager([partial(faulty.counter, i) for i in range(4)], workers=3)
    seen = manager.reset(10)["observation"][:, 0].tolist()
    manager.close()
    assert seen == [10, 11, 12, 13]
    assert manager.frames_per_step == 1
    assert np.diff([0, *(one.stop for one in manager.workers)]).tolist() == [1, 1, 2]


def test_a_worker_that_dies_while_idle_costs_a_state_its_exactness_and_no_more() -> None:
    manager = SubProcEnvManager(fns(4, -1), workers=2)
    manager.reset(0)
    manager.step(actions(4))
    assert manager.state_dict()["exact"]
    victim = manager.workers[1].process
    victim.kill()
    victim.join(5)
    with pytest.warns(UserWarning, match="environments 2-3: died between two steps"):
        assert not manager.state_dict()["exact"]
    assert not manager.exact
    with pytest.warns(UserWarning, match="environments 2-3: died .*restarted"):
        step = manager.step(actions(4))
    assert step.valid.tolist() == [True, True, False, False]
    assert manager.state_dict()["exact"]
    assert manager.exact
    manager.close()
