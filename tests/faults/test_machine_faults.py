"""What the machine around a run may be like: small, slow, open to others, used for hours."""

from __future__ import annotations

import json
import os
import random
import re
import stat
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import torch
from running import AGENTS, COMMON, call, only_run, trace, train
from scenarios import ELSEWHERE, PAGE, ROOT, SCENARIOS
from soak import SAMPLERS, flat, soak
from test_run_faults import started

import operant
from operant.processes.process import FORKSERVER
from operant.session.checkpoint.checkpoint import listing

pytestmark = pytest.mark.usefixtures("nothing_left_behind")
PARALLEL = f"{AGENTS['ppo in parallel']} {COMMON}"


def test_nothing_listens_on_the_network(tmp_path: Path) -> None:
    process = started(f"{AGENTS['ppo async']} {COMMON} --steps 1e9 --compile off", tmp_path)
    main = psutil.Process(process.pid)
    tree = [main, *main.children(recursive=True)]
    ports = [c for one in tree for c in one.net_connections("inet")]
    sockets = {c.laddr for one in tree for c in one.net_connections("unix") if c.laddr}
    open_to = [stat.S_IMODE(Path(path).parent.stat().st_mode) for path in sockets if path[0] == "/"]
    process.terminate()
    process.communicate(timeout=60)
    assert ports == []
    assert open_to == [0o700] * len(open_to)  # of multiprocessing's fork server


REFUSED = {
    "train ppo --env.id CartPol-v1": "no such environment; did you mean",
    "train ppo --env.id nowhere:CartPole-v1": "module 'nowhere' cannot be imported",
    "train dqn --env.id Pendulum-v1": "action 'action' is Box(-1.0, 1.0",
    "train sac --env.id no-such-env": "no such environment",
}


@pytest.mark.parametrize("line", REFUSED)
def test_what_cannot_be_trained_is_refused_in_one_line(line: str, tmp_path: Path) -> None:
    result = call(f"{line} --quiet", tmp_path)
    assert (result.code, result.err.count("\n"), list(tmp_path.iterdir())) == (2, 1, [])
    assert REFUSED[line] in result.err


def test_a_tiny_dev_shm_is_no_matter(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "operant", *PARALLEL.split(), "--runs", str(tmp_path)]
    small = 'mount -t tmpfs -o size=4k tmpfs /dev/shm || exit 77\nexec "$@"'
    command = ["unshare", "--mount", "sh", "-c", small, "sh", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 77 or (done.returncode and "unshare" in done.stderr):
        pytest.skip("mounting needs to be allowed")
    assert done.returncode == 0, done.stderr
    assert json.loads((only_run(tmp_path) / "done.json").read_text())["step"] >= 300


def test_a_clock_that_jumps_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, jumps = trace(train(AGENTS["ppo in parallel"], tmp_path / "whole")), random.Random(1)
    monkeypatch.setattr(time, "time", lambda: jumps.uniform(0, 4e9))
    begin = time.monotonic()
    assert trace(train(AGENTS["ppo in parallel"], tmp_path / "jumping")) == whole
    assert time.monotonic() - begin < 60


def test_a_slow_disk_is_written_to_less_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[int] = []

    def slow(fd: int) -> None:
        waits.append(fd)
        time.sleep(0.02)

    monkeypatch.setattr(os, "fsync", slow)
    keep = "--checkpoint.seconds 0.001 --checkpoint.share 0.05 --checkpoint.keep 100"
    assert call(f"{AGENTS['a2c']} {COMMON} {keep} --log-every 10", tmp_path).code == 0
    saved = listing(only_run(tmp_path) / "checkpoints")
    assert 2 <= len(saved) <= 8  # of 41 that it would have been
    assert len(waits) > 10


def test_workers_are_never_forked_from_a_process_with_threads(tmp_path: Path) -> None:
    package = Path(operant.__file__).parent
    forks = re.compile(r"os\.fork|get_context\(\"fork\"\)|set_start_method")
    found = [path.name for path in package.rglob("*.py") if forks.search(path.read_text())]
    assert found == ["precision.py"]  # its child multiplies once, with one thread, and ends
    assert FORKSERVER.get_start_method() == "forkserver"
    torch.set_num_threads(2)
    try:
        torch.ones(700, 700).mm(torch.ones(700, 700))  # which starts threads
        assert call(f"{PARALLEL} --threads 2", tmp_path).code == 0
    finally:
        torch.set_num_threads(1)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_nothing_grows_under_any_sampler() -> None:
    minutes = float(os.environ.get("SOAK_MINUTES", "2"))
    found = soak(list(SAMPLERS), minutes)
    assert {one["sampler"]: flat(one) for one in found} == dict.fromkeys(SAMPLERS, True), found


def test_every_scenario_that_applies_is_a_test_and_on_the_page() -> None:
    numbers = [one.number for one in SCENARIOS]
    assert numbers == [i for i in range(1, 45) if i not in ELSEWHERE]
    for test in (test for one in SCENARIOS for test in one.tests):
        path, _, name = test.partition("::")
        assert f"def {name}(" in (ROOT / "tests" / path).read_text(), test
    text = PAGE.read_text()
    for one in SCENARIOS:
        assert f"| {one.number} | {one.fault} | {one.expected} | passed" in text
        assert all(f"`{test}`" in text for test in one.tests)
