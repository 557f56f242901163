"""Training a run for longer than was asked at first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from running import call, trace, train

from operant.config import load_yaml
from operant.session.run_directory import lock

A2C = "train a2c --env.num-envs 2 --agent.length 8"


def test_a_finished_run_goes_on_as_if_it_had_been_longer_from_the_start(tmp_path: Path) -> None:
    whole = train(f"{A2C} --steps 512", tmp_path / "whole")
    run = train(f"{A2C} --steps 256", tmp_path / "parts")
    result = call(["resume", str(run), "--steps", "512", "--quiet"])
    assert (result.code, result.err) == (0, "")
    assert trace(run) == trace(whole)
    assert json.loads((run / "done.json").read_text())["step"] >= 512
    assert load_yaml(run / "config.yaml") == load_yaml(whole / "config.yaml")


def test_a_schedule_that_is_a_share_of_the_run_follows(tmp_path: Path) -> None:
    run = train(f"{A2C} --steps 64 --agent.lr linear(1e-3,0)", tmp_path)
    assert call(["resume", run.name, "--steps=128", "--quiet"], tmp_path).code == 0
    assert load_yaml(run / "config.yaml")["agent"]["lr"] == "linear(0.001, 0.0, 100% of 128)"


def test_the_newest_run_goes_on_without_being_named(tmp_path: Path) -> None:
    run = train(f"{A2C} --steps 64", tmp_path)
    assert call("resume --steps 128 --quiet", tmp_path).code == 0
    assert json.loads((run / "done.json").read_text())["step"] >= 128


@pytest.mark.parametrize("steps", [10, 64])
def test_fewer_steps_than_were_trained_are_refused(tmp_path: Path, steps: int) -> None:
    run = train(f"{A2C} --steps 64", tmp_path)
    before = (run / "config.yaml").read_bytes()
    trained = json.loads((run / "done.json").read_text())["step"]
    result = call(["resume", str(run), "--steps", str(steps)])
    assert result.code == 2
    message = f"steps = {steps}: {run} has trained {trained} steps already; expected more"
    assert message in result.err
    assert ((run / "config.yaml").read_bytes(), (run / "done.json").exists()) == (before, True)


def test_a_run_in_use_keeps_its_length(tmp_path: Path) -> None:
    run = train(f"{A2C} --steps 64", tmp_path)
    with lock(run):
        result = call(["resume", str(run), "--steps", "99"])
    assert (result.code, "is in use by process" in result.err) == (2, True)
    assert load_yaml(run / "config.yaml")["steps"] == 64


def test_the_help_of_resume_says_that_a_finished_run_can_go_on() -> None:
    assert "--steps" in call("resume --help").out
