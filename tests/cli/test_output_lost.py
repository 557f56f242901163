"""A terminal that is closed, and an output that is closed, full or read no more, lose no run."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from running import at_call, call, only_run, trace, train

from operant.session.checkpoint.checkpoint import newest

# One line of progress for each line of the log, as on a slow machine.
PROGRAM = """
import os, sys
if os.isatty(0):
    os.close(os.open(os.ttyname(0), os.O_RDWR))  # of a new session, it becomes its terminal
import operant.report.progress as progress
progress.PLAIN_SECONDS = progress.LIVE_SECONDS = 0.0
from operant.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
A2C = "train a2c --env.num-envs 2 --recipe none --seed 3 --threads 1 --network.hidden 8"
SHORT = f"{A2C} --steps 2000 --log-every 64 --eval.every none"
ENDLESS = f"{A2C} --steps 100000000 --log-every 64 --eval.every none --checkpoint.seconds 9999"


def shell(line: str, where: str, runs: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in a shell that redirects its output."""
    program = runs.parent / "program.py"
    program.write_text(PROGRAM)
    text = f"{sys.executable} {program} {line} {where}"
    bash = ["bash", "-o", "pipefail", "-c", text]
    return subprocess.run(bash, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    ("where", "warnings"),
    [(">/dev/full", 1), (">&-", 0), ("| head -n 1", 1), (">/dev/full 2>&1", 0), (">&- 2>&-", 0)],
)
def test_training_goes_on_to_its_end_without_output(
    where: str, warnings: int, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    done = shell(f"{SHORT} --runs {runs}", where, runs)
    assert (done.returncode, done.stderr.count("\n")) == (0, warnings), done.stderr
    assert done.stderr.count("; training goes on without it") == warnings
    assert json.loads((only_run(runs) / "done.json").read_text())["step"] >= 2000
    assert not (only_run(runs) / "error.txt").exists()


@pytest.mark.parametrize(("where", "code"), [(">/dev/full", 1), (">&-", 0), ("| true", 0)])
def test_a_command_without_output_ends_without_a_traceback(
    where: str, code: int, tmp_path: Path
) -> None:
    done = shell("list", where, tmp_path / "runs")
    assert (done.returncode, done.stderr.count("\n")) == (code, code), done.stderr


def on_terminal(line: str) -> tuple[subprocess.Popen[bytes], int]:
    """A command in a terminal of its own, whose other end is the second value."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *line.split()],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    return process, master


def read_until(master: int, word: bytes) -> None:
    seen = b""
    while word not in seen:
        assert select.select([master], [], [], 60)[0], seen
        seen += os.read(master, 1 << 16)


@pytest.mark.every(2)
@pytest.mark.parametrize("sampler", ["serial", "parallel --env.workers 2"])
def test_a_terminal_that_is_closed_ends_the_run_after_saving(sampler: str, tmp_path: Path) -> None:
    process, master = on_terminal(f"{ENDLESS} --sampler {sampler} --runs {tmp_path}")
    read_until(master, b"steps/s")
    os.close(master)
    assert process.wait(60) == 128 + signal.SIGHUP
    run = only_run(tmp_path)
    saved = newest(run / "checkpoints")
    assert saved.step > 0
    assert not (run / "error.txt").exists()


def test_where_the_signal_is_ignored_training_goes_on_without_its_terminal(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does; children inherit it
    try:
        process, master = on_terminal(f"{SHORT} --runs {tmp_path}")
    finally:
        signal.signal(signal.SIGHUP, before)
    read_until(master, b"steps/s")
    os.close(master)
    assert process.wait(60) == 0
    assert json.loads((only_run(tmp_path) / "done.json").read_text())["step"] >= 2000


def test_a_run_that_sighup_stopped_goes_on_as_if_never_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = "train a2c --env.num-envs 2 --steps 400"
    whole = trace(train(line, tmp_path / "whole"))
    with monkeypatch.context() as patch:
        hang_up = partial(os.kill, os.getpid(), signal.SIGHUP)
        at_call("operant.samplers.explorer:Explorer.update", 15, hang_up, patch.setattr)
        run = train(line, tmp_path / "cut", code=129)
    assert call(["resume", str(run), "--quiet"]).code == 0
    assert trace(run) == whole
