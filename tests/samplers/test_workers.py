"""Workers that die, hang or throw: seen, named, replaced, and never left behind."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from fragile import LENGTH, SEED, asynchronous, parallel
from kinds import worker_of

from operant.core.errors import EnvironmentFault, UsageError

MAKES = pytest.mark.parametrize("make", [parallel, asynchronous])


pytestmark = pytest.mark.usefixtures("nothing_left_behind")


@MAKES
@pytest.mark.parametrize(
    ("mode", "what"), [("kill", r"died \(killed by SIGKILL"), ("hang", "hung for 0.5 s")]
)
def test_the_part_of_a_lost_worker_is_not_valid(
    make: Any, mode: str, what: str, tmp_path: Path
) -> None:
    sampler = make(3, mode=mode, at=LENGTH + 2, times=1, record=str(tmp_path / "x"), timeout=0.5)
    whole = sampler.obtain_samples(0)[0]
    assert bool(whole.valid.all())
    running = ~whole.first[-1, 2:].clone()
    with pytest.warns(UserWarning, match=f"worker of environments 2-3: {what}.*; restarted"):
        chunk, finished = sampler.obtain_samples(1)
    assert chunk.valid.float().mean(0).tolist() == [1, 1, 0, 0]
    assert chunk.truncated[0, 2:].equal(running)
    assert not chunk.truncated[1:, 2:].any()
    assert float(chunk.reward[:, 2:].abs().sum()) == 0
    seen = chunk.observation["observation"][0, 2:]
    assert running.any()
    assert chunk.next_observation["observation"][0, 2:][running].equal(seen[running])
    assert len(finished) == int((chunk.ended & chunk.valid).sum())
    sampler.close()


@MAKES
def test_a_replaced_worker_begins_new_episodes_under_a_new_seed(make: Any, tmp_path: Path) -> None:
    sampler = make(3, mode="kill", at=2, times=1, record=str(tmp_path / "x"))
    with pytest.warns(UserWarning, match="restarted"):
        chunk, _ = sampler.obtain_samples(0)
    seeds = chunk.observation["observation"][-1, :, 0].tolist()
    assert seeds[:2] == [SEED, SEED + 1]
    assert seeds[2] > 1000
    assert chunk.first[-1, 2:].all()
    assert sampler.tracker.lengths[2:].max() < LENGTH
    chunk, _ = sampler.obtain_samples(1)
    assert bool(chunk.valid.all())
    assert chunk.observation["observation"][0, :, 0].tolist() == seeds
    sampler.close()


@pytest.mark.filterwarnings("ignore:worker of")
def test_a_worker_that_dies_again_and_again_ends_the_run() -> None:
    sampler = parallel(0, mode="kill", at=1, max_restarts=1)
    sampler.obtain_samples(0)
    with pytest.raises(EnvironmentFault, match=r"environments 0-1: died.*max_restarts = 1"):
        sampler.obtain_samples(1)
    sampler.close()


@MAKES
def test_an_environment_that_throws_stops_the_run_with_its_traceback(make: Any) -> None:
    sampler = make(2, mode="throw", at=4)
    with pytest.raises(EnvironmentFault, match="environment 2, step 4: step raised") as caught:
        sampler.obtain_samples(0)
    assert "the simulator broke" in caught.value.__notes__[0]
    sampler.close()


def test_a_slow_batch_is_not_a_hung_one() -> None:
    sampler = parallel(3, mode="stall", at=1, timeout=0.3)
    chunk, _ = sampler.obtain_samples(0)
    assert bool(chunk.valid.all())
    sampler.close()


@MAKES
def test_closing_does_not_wait_for_the_batch_under_way(make: Any) -> None:
    sampler = make(0, mode="stall", at=LENGTH + 1)
    sampler.obtain_samples(0)
    began = time.monotonic()
    sampler.close()
    sampler.close()
    assert time.monotonic() - began < 0.4


def test_a_sampler_that_is_forgotten_takes_its_workers_along() -> None:
    sampler = parallel()
    workers = [psutil.Process(one.process.pid) for one in sampler.pool.workers]
    del sampler
    gc.collect()
    assert not psutil.wait_procs(workers, 2)[1]


HERE = Path(__file__).parent
PATHS = [str(HERE), str(HERE.parent), str(HERE.parent / "faults")]  # of what `fragile` imports
ORPHANS = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore it
sys.path[:0] = {paths!r}
import fragile
sampler = fragile.{make}(0, mode="hang", at=1)
print(*(one.process.pid for one in sampler.pool.workers), flush=True)
sampler.obtain_samples(0)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_no_worker_outlives_its_parent_even_in_the_middle_of_a_step(number: int) -> None:
    code = ORPHANS.format(paths=PATHS, make="asynchronous")
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert parent.stdout is not None
    workers = [int(pid) for pid in parent.stdout.readline().split()]
    time.sleep(0.3)
    parent.send_signal(number)
    parent.wait(20)
    parent.stdout.close()
    _, alive = psutil.wait_procs([psutil.Process(p) for p in workers if psutil.pid_exists(p)], 6)
    assert len(workers) == 2
    assert not alive


def test_workers_that_are_interrupted_say_nothing() -> None:
    code = ORPHANS.format(paths=PATHS, make="asynchronous")
    code = code.replace("hang", "stall") + "sampler.close()\n"
    done = subprocess.run([sys.executable, "-c", code], timeout=60, capture_output=True, check=True)
    assert done.stderr == b""


def test_what_cannot_be_combined_is_refused() -> None:
    with pytest.raises(UsageError, match=r"env.manager = 'subproc'.*use env.manager = 'auto'"):
        worker_of("parallel", env={"manager": "subproc"})
    with pytest.raises(UsageError, match=r"env.num_envs = 7: .*expected an even number"):
        worker_of("alternating", env={"num_envs": 7})
    with pytest.raises(UsageError, match=r"decorrelate = 5: NativeEnvManager .* 'simple'"):
        worker_of("serial", env={"manager": "native"}, decorrelate=5)
    with pytest.raises(UsageError, match=r"mid_batch_reset = False: NativeEnvManager"):
        worker_of("async", env={"manager": "native"}, mid_batch_reset=False)


@MAKES
def test_a_worker_that_dies_while_idle_costs_a_checkpoint_its_exactness_and_no_more(
    make: Any,
) -> None:
    sampler = make()
    sampler.obtain_samples(0)
    assert sampler.manager.exact
    victim = sampler.pool.workers[1].process
    victim.kill()
    victim.join(5)
    with pytest.warns(UserWarning, match="between two rollouts.*begins new episodes"):
        state = sampler.state_dict()
    assert not state["manager"]["exact"]
    assert not sampler.manager.exact
    with pytest.warns(UserWarning, match="died .*restarted"):
        chunks = [sampler.obtain_samples(i)[0].valid.clone() for i in (1, 2)]
    assert not all(bool(valid.all()) for valid in chunks)
    assert sampler.manager.restarts == 1
    assert sampler.state_dict()["manager"]["exact"]
    assert sampler.manager.exact
    sampler.close()


def test_a_death_while_the_replacement_is_built_counts_as_one_more(tmp_path: Path) -> None:
    sampler = parallel(
        3, mode="kill", at=2, times=1, record=str(tmp_path / "x"), again=str(tmp_path / "y")
    )
    with pytest.warns(UserWarning, match="died while starting.*restarted"):
        sampler.obtain_samples(0)
    assert sampler.pool.restarts == 2
    assert bool(sampler.obtain_samples(1)[0].valid.all())
    sampler.close()
