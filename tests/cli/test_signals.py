"""One Ctrl-C or SIGTERM ends every command within two seconds, sent to real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from running import call, only_run, trace, train

import operant
from operant.session.checkpoint.checkpoint import newest

ROOT = Path(operant.__file__).parents[1]
SLOW = 20.0  # seconds: ten times what an idle machine takes; each would go on for many minutes
SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
PPO = "train ppo --env.num-envs 2 --agent.length 16 --agent.minibatch 16 --agent.epochs 2"
# Run before the command: says when a function is first called, and slows environments down.
PRELUDE = """
import os, sys, time
sys.path.insert(0, {tests!r})
from running import at_call
at_call({where!r}, {nth}, lambda: print("there", flush=True))
from operant.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train("train a2c --steps 20", tmp_path_factory.mktemp("runs"))


def ended_at(
    where: str, line: list[str], number: int, nth: int = 1, delay: float = 0.2
) -> tuple[int, str, float]:
    """Send the signal once the command calls `where`; its code, its errors, and the seconds."""
    program = PRELUDE.format(tests=str(ROOT / "tests" / "session"), where=where, nth=nth)
    process = subprocess.Popen(
        [sys.executable, "-c", program, *line],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )
    try:
        assert process.stdout is not None
        seen = next((True for text in process.stdout if text.strip() == "there"), False)
        assert seen, process.communicate()[1]
        time.sleep(delay)
        process.send_signal(number)
        begin = time.monotonic()
        _, errors = process.communicate(timeout=60)
        return process.returncode, errors, time.monotonic() - begin
    finally:
        process.kill()


@pytest.mark.every(2)
@pytest.mark.parametrize(("number", "code"), SIGNALS)
@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("operant.samplers.evaluate:evaluate", ["eval", "RUN", "--episodes", "1000000"]),
        ("operant.report.video:_even", ["play", "RUN", "--record", "x.mp4", "--episodes", "999"]),
        (
            "operant.report.play:as_image",
            ["play", "RUN", "--record", "x.gif", "--episodes", "999"],
        ),
    ],
    ids=["eval", "mp4", "gif"],
)
def test_eval_and_play_end_at_once_with_one_line(
    where: str, words: list[str], number: int, code: int, run: Path, tmp_path: Path
) -> None:
    line = [str(run) if word == "RUN" else word for word in words]
    line = [str(tmp_path / word) if word.startswith("x.") else word for word in line]
    found, errors, seconds = ended_at(where, line, number)
    assert (found, errors.count("\n")) == (code, 1), errors
    assert "interrupted" in errors
    assert seconds < SLOW
    assert not list(tmp_path.iterdir())  # no half of a video


@pytest.mark.every(2)
@pytest.mark.parametrize(("number", "code"), SIGNALS)
@pytest.mark.parametrize(
    "where",
    [
        "operant.session.try_out:try_out",
        "operant.envs.managers.choose:make_manager",
        "operant.session.runner:Runner.__init__",
    ],
)
def test_starting_up_is_left_at_once(where: str, number: int, code: int, tmp_path: Path) -> None:
    line = [*PPO.split(), "--runs", str(tmp_path), "--steps", "100000000", "--quiet"]
    found, errors, seconds = ended_at(where, line, number, delay=0.0)
    assert (found, "Traceback" in errors) == (code, False), errors
    assert seconds < SLOW


@pytest.mark.parametrize("where", ["operant.report.plot:plot_runs", "operant.report.play:record"])
def test_what_follows_training_is_left_at_once_and_the_run_is_finished(
    where: str, tmp_path: Path
) -> None:
    line = [*PPO.split(), "--runs", str(tmp_path), "--steps", "64", "--video", "gif", "--quiet"]
    found, errors, seconds = ended_at(where, line, signal.SIGTERM, delay=0.0)
    assert (found, "Traceback" in errors) == (143, False), errors
    assert seconds < SLOW
    assert (only_run(tmp_path) / "done.json").exists()


STUCK = """
import ctypes, os, signal, sys, threading, time
from operant.cli import main as cli
def stuck(words):
    print("there", flush=True)
    {how}
cli._dispatch = stuck
sys.exit(cli.main(["eval"]))
"""
BLOCKED = {
    "in a library": "ctypes.CDLL(None).sleep(60) or ctypes.CDLL(None).poll(None, 0, 60_000)",
    "that takes it for its own": "\n    ".join(
        ["for _ in range(600):", "  try: time.sleep(60)", "  except BaseException: pass"]
    ),
}


@pytest.mark.parametrize("how", BLOCKED)
def test_a_command_that_hangs_is_ended(how: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", STUCK.format(how=BLOCKED[how])],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "there\n"
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 143
    assert errors.count("\n") == 1


@pytest.fixture
def cold_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "compiled"))


@pytest.mark.slow
@pytest.mark.usefixtures("cold_cache")
def test_compiling_is_left_at_once_and_resumed_bit_for_bit(tmp_path: Path) -> None:
    settings = "--compile on --steps 128 --recipe none --quiet --threads 1 --network.hidden 8"
    line = f"{PPO} {settings} --log-every 32 --eval.every none".split()
    runs = ["--runs", str(tmp_path / "cut")]
    where = "torch._dynamo.convert_frame:compile_frame"
    found, errors, seconds = ended_at(where, [*line, *runs], signal.SIGTERM, nth=2, delay=0.5)
    assert (found, "Traceback" in errors) == (143, False), errors
    assert "the update that was being compiled is left out" in errors
    assert seconds < SLOW
    run = only_run(tmp_path / "cut")
    assert newest(run / "checkpoints").step == 0
    assert call(["resume", str(run), "--quiet"]).code == 0
    assert call(line, tmp_path / "whole").code == 0
    assert trace(run) == trace(only_run(tmp_path / "whole"))
