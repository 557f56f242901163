"""Workers that are lost, hang or raise in the middle of a run: noticed, named, replaced."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import fault_env
import pytest
from faulty_runs import Watch, finished, train

from operant.envs.managers.subproc import SubProcEnvManager
from operant.envs.providers.gymnasium import GymEnv

pytestmark = pytest.mark.usefixtures("nothing_left_behind")
KINDS = pytest.mark.parametrize("sampler", ["subproc", "parallel", "alternating", "async"])


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch, record_property: Any) -> Watch:
    return Watch(monkeypatch, record_property)


@KINDS
def test_a_killed_worker_is_replaced_and_counted(
    sampler: str, tmp_path: Path, watch: Watch
) -> None:
    watch.notice()
    result = train(tmp_path, sampler, mode="kill", times=1)
    assert result.code == 0, result.err
    assert "died (killed by SIGKILL, perhaps out of memory); restarted" in result.err
    assert len(fault_env.events(tmp_path / "record")) == 1
    assert finished(tmp_path)["worker_restarts"] == 1
    assert finished(tmp_path)["step"] >= 800
    watch.check(1, tmp_path / "record")


@pytest.mark.parametrize(
    ("mode", "ending"), [("segfault", "killed by SIGSEGV"), ("exit", "exit code 7")]
)
def test_a_crash_is_named_by_its_signal_or_exit_code(
    mode: str, ending: str, tmp_path: Path, watch: Watch
) -> None:
    watch.notice()
    result = train(tmp_path, mode=mode, times=1)
    assert (result.code, result.err.count("\n")) == (0, 1), result.err
    assert f"worker of environments 2-3: died ({ending})" in result.err
    assert finished(tmp_path)["worker_restarts"] == 1
    watch.check(2, tmp_path / "record")


@pytest.mark.parametrize("sampler", ["parallel", "alternating"])
def test_a_worker_that_always_dies_ends_the_run(sampler: str, tmp_path: Path, watch: Watch) -> None:
    result = train(tmp_path, sampler, "--env.max-restarts 2", mode="kill", index=-1, at=5)
    now = time.monotonic()
    assert result.code == 1, result.err
    assert "died" in result.err.splitlines()[-1]
    assert "after max_restarts = 2 restarts within 600 s" in result.err
    # Two workers die three times; those of the other half, if there is one, once.
    assert 3 <= len(fault_env.events(tmp_path / "record")) <= 8
    watch.check(3, tmp_path / "record", now)


@pytest.mark.parametrize(
    ("sampler", "place"),
    [("serial", "step"), ("parallel", "reset"), ("async", "step"), ("alternating", "reset")],
)
def test_an_exception_of_an_environment_ends_the_run_with_its_place(
    sampler: str, place: str, tmp_path: Path, watch: Watch
) -> None:
    watch.notice("operant.session.session:Session.__exit__")
    result = train(tmp_path, sampler, mode="throw", place=place)
    assert (result.code, result.err.count("\n")) == (1, 1), result.err
    assert "environment 2, step " in result.err
    assert f"{place} raised RuntimeError: the simulator broke (traceback: " in result.err
    (trace,) = tmp_path.glob("runs/*/error.txt")
    assert "in throw" in trace.read_text()
    watch.check(4, tmp_path / "record")


def test_a_constructor_that_raises_is_refused_before_there_is_a_run(tmp_path: Path) -> None:
    result = train(tmp_path, "serial", mode="throw", place="construct", index=-1)
    assert (result.code, result.err.count("\n")) == (2, 1), result.err
    assert "cannot be made: RuntimeError: the simulator broke" in result.err
    assert len(fault_env.events(tmp_path / "record")) == 1
    assert not list(tmp_path.glob("runs/*"))


@pytest.mark.parametrize(
    ("mode", "place", "sampler"),
    [("hang", "step", "alternating"), ("stop", "step", "parallel"), ("hang", "reset", "parallel")],
)
def test_a_worker_that_hangs_is_replaced_after_the_timeout(
    mode: str, place: str, sampler: str, tmp_path: Path, watch: Watch
) -> None:
    watch.notice()
    result = train(tmp_path, sampler, "--env.step-timeout 2", mode=mode, place=place, times=1)
    assert result.code == 0, result.err
    assert "hung for 2 s; restarted" in result.err
    assert finished(tmp_path)["worker_restarts"] == 1
    watch.check(5, tmp_path / "record")


def slow_to_close(record: str) -> GymEnv:
    return GymEnv(fault_env.FaultEnv(mode="hang", place="close", at=0, record=record))


def test_a_worker_that_hangs_while_closing_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("operant.processes.process.CLOSE_TIMEOUT", 0.5)
    record = tmp_path / "record"
    manager = SubProcEnvManager([partial(slow_to_close, str(record))])
    manager.reset(0)
    manager.close()
    assert time.monotonic() - fault_env.events(record)[0].moment < 3


def test_slow_steps_are_not_taken_for_a_hang(tmp_path: Path) -> None:
    result = train(
        tmp_path, more="--env.step-timeout 2", mode="stall", probability=0.1, index=-1, times=12
    )
    assert (result.code, result.err) == (0, "")
    assert len(fault_env.events(tmp_path / "record")) == 12
    assert "worker_restarts" not in finished(tmp_path)


def test_an_environment_that_takes_all_memory_is_named(tmp_path: Path, watch: Watch) -> None:
    watch.notice("operant.session.session:Session.__exit__")
    result = train(tmp_path, mode="leak")
    assert (result.code, result.err.count("\n")) == (1, 1), result.err
    assert "environment 2, step " in result.err
    assert "MemoryError" in result.err
    watch.check(40, tmp_path / "record")


def test_a_child_of_an_environment_does_not_delay_the_notice_of_its_death(
    tmp_path: Path, watch: Watch
) -> None:
    watch.notice()
    result = train(tmp_path, mode="fork", times=1)
    assert result.code == 0, result.err
    assert finished(tmp_path)["worker_restarts"] == 1
    watch.check(1, tmp_path / "record")


def test_what_an_environment_prints_changes_nothing(tmp_path: Path) -> None:
    result = train(tmp_path, mode="print", times=3)
    assert (result.code, result.err) == (0, "")
    assert finished(tmp_path)["step"] >= 800
