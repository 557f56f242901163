"""Evaluation ends: at a limit, and when a signal asks the run to stop."""

from __future__ import annotations

import json
import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces as gs
from running import AGENTS, at_call, call, only_run, trace, train

import operant
from operant.session.session import read_config

PPO = AGENTS["ppo"]
COUNT = "operant.samplers.evaluate:_Scores.add"  # called at each step of an evaluation


class Forever(gymnasium.Env[Any, Any]):
    """Has no end."""

    observation_space, action_space = gs.Box(0, 9, (1,), np.float32), gs.Discrete(2)

    def __init__(self, **kwargs: Any) -> None:
        pass

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return np.zeros(1, np.float32), 1.0, False, False, {}


gymnasium.register("Forever-v0", Forever)


@pytest.mark.parametrize(("flag", "steps"), [("", 10_000), ("--eval.max-steps 30", 30)])
def test_an_environment_without_an_end_is_noticed_and_evaluated(
    flag: str, steps: int, tmp_path: Path
) -> None:
    line = f"{PPO} --env.id Forever-v0 --eval.every 400 --eval.episodes 1 {flag} --recipe none"
    result = call(line.replace("--quiet", ""), tmp_path)
    assert result.code == 0, result.err
    assert f"Forever-v0 has no time limit: evaluation cuts an episode after {steps:,}" in result.out
    run = only_run(tmp_path)
    done = json.loads((run / "done.json").read_text())
    assert (done["eval/mean_reward"], done["eval/mean_ep_length"]) == (steps, steps)
    assert call(["eval", str(run), "--episodes", "1"]).out.startswith(f"Forever-v0: {steps:.1f} ±")


def test_python_says_so_too_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings: dict[str, Any] = {"steps": 16, "env": {"num_envs": 2}, "eval": {"every": None}}
    operant.train("a2c", "Forever-v0", recipe="none", runs=tmp_path, **settings)
    said = capsys.readouterr().out
    assert said.count("Forever-v0 has no time limit: evaluation cuts an episode after") == 1
    operant.train("a2c", "Forever-v0", quiet=True, runs=tmp_path, **settings)
    assert capsys.readouterr().out == ""


def test_with_a_time_limit_nothing_is_said_and_evaluation_has_no_limit(tmp_path: Path) -> None:
    run = train(PPO, tmp_path)
    assert read_config(run / "config.yaml").eval.max_steps == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("nth", [1, 12])
def test_a_signal_inside_an_evaluation_saves_stops_and_resumes_bit_for_bit(
    nth: int, number: int, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        at_call(COUNT, nth, partial(os.kill, os.getpid(), number), patch.setattr)
        at_call(COUNT, nth + 1, lambda: pytest.fail("evaluated on"), patch.setattr)
        run = train(PPO, tmp_path / "cut", code=code)
    assert not (run / "done.json").exists()
    assert call(["resume", str(run), "--quiet"]).code == 0
    assert trace(run) == trace(train(PPO, tmp_path / "whole"))


def test_a_signal_in_the_last_evaluation_leaves_only_that_to_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = PPO.replace("--steps 400", "--steps 128")
    with monkeypatch.context() as patch:
        at_call(COUNT, 1, partial(os.kill, os.getpid(), signal.SIGINT), patch.setattr)
        run = train(line, tmp_path / "cut", code=130)
    assert call(["resume", str(run), "--quiet"]).code == 0
    assert trace(run) == trace(train(line, tmp_path / "whole"))
    assert "eval/mean_reward" in json.loads((run / "done.json").read_text())
