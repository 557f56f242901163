"""Ctrl-C in `operant.train`, and runs without evaluation."""

from __future__ import annotations

import json
import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from running import at_call, only_run

import operant
from operant.config import parse_flags
from operant.core.errors import UsageError
from operant.session.checkpoint.checkpoint import newest
from operant.session.run_settings import EvalConfig
from operant.session.session import read_config

CHUNK = "operant.samplers.explorer:Explorer.update"
SMALL: dict[str, Any] = {
    "steps": 64,
    "log_every": 32,
    "quiet": True,
    "threads": 1,
    "env": {"num_envs": 2},
    "agent": {"length": 8, "minibatch": 8, "epochs": 1},
}


def train(runs: Path, **settings: Any) -> operant.Run:
    return operant.train("ppo", "CartPole-v1", runs=runs, **{**SMALL, **settings})


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_a_loop_over_seeds_after_saving(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_call(CHUNK, 2, partial(os.kill, os.getpid(), number), monkeypatch.setattr)
    with pytest.raises(KeyboardInterrupt, match=str(int(number))):
        [train(tmp_path, seed=seed, eval={"episodes": 1}) for seed in range(3)]
    run = only_run(tmp_path)  # the first of three
    assert newest(run / "checkpoints").step == 32
    assert not (run / "error.txt").exists()
    assert not (run / "done.json").exists()


def test_a_run_without_evaluation_plays_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_call("operant.samplers.evaluate:Evaluation.run", 1, pytest.fail, monkeypatch.setattr)
    run = train(tmp_path, eval={"every": None})
    assert "eval" not in (run.path / "metrics.jsonl").read_text()
    assert json.loads((run.path / "done.json").read_text())["step"] >= 64
    assert read_config(run.path / "config.yaml").eval.every is None
    monkeypatch.undo()
    assert run.eval(episodes=1)["eval/mean_reward"] > 0


def test_without_evaluation_the_same_is_learned(tmp_path: Path) -> None:
    networks = [
        newest(train(tmp_path / str(every), eval={"every": every}).path / "checkpoints").state[
            "container"
        ]["agent"]["network"]
        for every in (None, 32)
    ]
    assert all(x.equal(networks[1][name]) for name, x in networks[0].items())


def test_none_on_the_command_line_switches_evaluation_off() -> None:
    assert parse_flags(EvalConfig, ["--every", "none"])[0].every is None


def test_a_negative_interval_is_refused() -> None:
    with pytest.raises(UsageError, match="every = -1: expected a finite number of at least 0"):
        EvalConfig(every=-1)
