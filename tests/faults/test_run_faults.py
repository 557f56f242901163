"""Whole runs that are killed, stopped, resumed, changed between, or written by two processes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from faulty_runs import Watch
from leftovers import running
from running import AGENTS, COMMON, ForkServer, at_call, call, only_run, trace, train
from test_kill import begin_or_resume, begun, unharmed

from operant.core.tree import leaves
from operant.session.checkpoint.checkpoint import listing, newest

pytestmark = pytest.mark.usefixtures("nothing_left_behind")
CHUNK = "operant.samplers.explorer:Explorer.update"
WRITE = "operant.core.durable:Durable.write"


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch, record_property: Any) -> Watch:
    return Watch(monkeypatch, record_property)


def started(line: str, runs: Path) -> subprocess.Popen[bytes]:
    """A command in a process of its own, as soon as it has saved a checkpoint after the first."""
    words = [sys.executable, "-m", "operant", *line.split(), "--runs", str(runs)]
    process = subprocess.Popen(words, stderr=subprocess.PIPE)
    while process.poll() is None and len(list(runs.glob("*/checkpoints/ckpt-*"))) < 2:
        time.sleep(0.02)
    assert process.poll() is None, process.communicate()[1].decode()
    return process


@pytest.mark.parametrize("name", ["ppo in parallel", "ppo async"])
def test_a_killed_run_leaves_no_process_and_is_resumed(
    name: str, tmp_path: Path, watch: Watch
) -> None:
    process = started(f"{AGENTS[name]} {COMMON} --steps 4000", tmp_path)
    tree = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    killed = time.monotonic()
    process.communicate()
    assert len(tree) >= 3  # two workers and the fork server
    assert not running(tree, 10)
    watch.check(13, killed, time.monotonic())
    step = newest(only_run(tmp_path) / "checkpoints").step
    assert call("resume --quiet --steps 4100", tmp_path).code == 0
    assert newest(only_run(tmp_path) / "checkpoints").step >= 4100 > step > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))  # 200 kills in all
def test_a_run_killed_twenty_times_ends_as_if_it_never_was(seed: int, tmp_path: Path) -> None:
    moments, name = random.Random(seed), ("a2c", "ppo", "dqn", "sac")[seed % 4]
    line = f"{AGENTS[name]} --steps {1000 if name == 'sac' else 4000}"
    runs, codes, steps = tmp_path / "cut", [], [-1]
    with ForkServer() as server:
        whole = unharmed(server, line, tmp_path / "whole")
        for _ in range(20):
            pid = server.start(begin_or_resume(runs, line))
            time.sleep(moments.uniform(0.0, 0.5))
            os.kill(pid, signal.SIGKILL)
            codes.append(server.wait())
            made = [x for run in runs.glob("*/checkpoints") for x in listing(run)]
            steps.append(newest(made[-1].parent).step if made else -1)
        server.start(begin_or_resume(runs, line))
        assert server.wait() == 0
    assert codes.count(-signal.SIGKILL) >= 10  # the others were quicker
    assert steps == sorted(steps)
    assert trace(begun(runs)) == whole


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, str]:
    """The trace of A2C when nothing stops it."""
    return trace(train(AGENTS["a2c"], tmp_path_factory.mktemp("whole")))


@pytest.mark.parametrize(("where", "nth"), [(CHUNK, 15), (WRITE, 9)])
@pytest.mark.parametrize(("number", "times"), [(signal.SIGTERM, 1), (signal.SIGINT, 2)])
def test_a_signal_at_any_moment_ends_the_run_resumably(
    number: int,
    times: int,
    where: str,
    nth: int,
    tmp_path: Path,
    whole: tuple[bytes, str],
    watch: Watch,
) -> None:
    sent: list[float] = []

    def send() -> None:
        sent.append(time.monotonic())
        for _ in range(times):
            os.kill(os.getpid(), number)

    with pytest.MonkeyPatch.context() as patch:
        at_call(where, nth, send, patch.setattr)
        result = call(f"{AGENTS['a2c']} {COMMON} --checkpoint.seconds 0.001", tmp_path)
    watch.check(20, sent[0], time.monotonic())
    assert result.code == 128 + number, result.err
    assert call("resume --quiet", tmp_path).code == 0
    assert trace(only_run(tmp_path)) == whole


def test_a_resumed_replay_agent_has_the_same_buffer_and_owes_no_more_updates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = f"{AGENTS['dqn']} --agent.prioritized"
    whole = newest(train(line, tmp_path / "whole") / "checkpoints").state["container"]
    with monkeypatch.context() as patch:
        at_call(CHUNK, 20, partial(os.kill, os.getpid(), signal.SIGTERM), patch.setattr)
        run = train(line, tmp_path / "cut", code=143)
    before = newest(run / "checkpoints").state["container"]["agent"]["updates"]
    assert call(["resume", str(run), "--quiet"]).code == 0
    found = newest(run / "checkpoints").state["container"]
    assert before < found["agent"]["updates"] == whole["agent"]["updates"]
    ours, theirs = (dict(leaves(state["agent"])) for state in (found, whole))
    assert ours.keys() == theirs.keys()
    assert all(str(ours[name]) == str(theirs[name]) for name in ours)


def test_a_run_whose_network_was_changed_is_not_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        at_call(CHUNK, 15, partial(os.kill, os.getpid(), signal.SIGTERM), patch.setattr)
        run = train(AGENTS["a2c"], tmp_path, code=143)
    config, before = run / "config.yaml", trace(run)
    config.write_text(config.read_text().replace("hidden:\n  - 8\n", "hidden:\n  - 9\n"))
    result = call(["resume", str(run), "--quiet"])
    assert result.code in (1, 2)
    assert "config.yaml" in result.err
    assert "Traceback" not in result.err
    assert trace(run) == before


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    process = started(f"{AGENTS['a2c']} {COMMON} --steps 1e9 --compile off", tmp_path)
    result = call(["resume", str(only_run(tmp_path)), "--quiet"])
    process.terminate()
    assert process.wait(60) == 143
    assert process.stderr is not None
    process.stderr.close()
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert f"is in use by process {process.pid}; wait for it to end" in result.err
