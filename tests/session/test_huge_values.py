"""Numbers of every size, empty paths and misplaced commas are refused before there is a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from running import call

BELOW = "expected an integer below 2**63"
FLOAT32 = "expected at most 3.4e+38, as in float32"
PATH = "expected the path of a file or directory"
LONG = "1" * 400
CASES = {
    "an integer of 400 digits": (f"--steps {LONG}", f"steps = {'1' * 80}…: {BELOW}"),
    "an integer of 5,000 digits": (f"--seed {'1' * 5_000}", "…: expected an integer"),
    "400 digits for a fraction": (f"--agent.gamma {LONG}", "…: expected a number from 0 to 1"),
    "400 digits for a rate": (f"--agent.lr {LONG}", f"…: {FLOAT32}"),
    "400 digits in a list": (f"--env.hide {LONG}", f"env.hide[0] = {'1' * 80}…: {BELOW}"),
    "400 digits in a schedule": (f"--agent.lr linear(1,0,{LONG})", "agent.lr = 'linear(1,0,111"),
    "2**63 steps": ("--steps 9223372036854775808", f"steps = 9223372036854775808: {BELOW}"),
    "2**63 as a seed": ("--seed 9223372036854775808", BELOW),
    "2**63 environments": ("--env.num-envs 9223372036854775808", BELOW),
    "2**63 units": ("--network.hidden 9223372036854775808", f"hidden[0] = {2**63}: {BELOW}"),
    "2**63 steps of a schedule": ("--agent.lr linear(1,0,9223372036854775808)", BELOW),
    "beyond float32": ("--agent.clip 1e39", f"agent.clip = 1e+39: {FLOAT32}"),
    "a schedule beyond float32": ("--agent.lr linear(1e39,0)", f"1e39,0)': {FLOAT32}"),
    "layers for no memory": ("--network.hidden 1e15", "its weights need 14551.9 TiB, and here are"),
    "an LSTM for no memory": ("--network.lstm 1e9", "the network cannot be made: its weights need"),
    "endless random steps": ("--decorrelate 1e18", "decorrelate = 1e+18: expected a number from 0"),
    "an endless timeout": ("--env.step-timeout 1e300", "env.step_timeout = 1e+300: expected a"),
    "a stack of frames": ("--env.frame-stack 1e9", "env.frame_stack = 1000000000.0: expected"),
    "underscores": ("--steps 1__0", "steps = '1__0': expected an integer"),
    "an underscore at the end": ("--steps 10_", "steps = '10_': expected an integer"),
    "only a comma": ("--network.hidden ,", "--network.hidden ',': a value is missing"),
    "nothing between commas": ("--network.hidden 8,,8", "--network.hidden '8,,8': a value"),
    "half a bracket": ("--network.hidden [8", "network.hidden[0] = '[8': expected an integer"),
    "a name that leads out": ("--name ../../x", "name = '../../x': expected up to 200 letters"),
    "a name too long": (f"--name {'x' * 300}", "expected up to 200 letters, digits"),
    "no file": ("--config=", f"config = '': {PATH}"),
    "no run": ("--from=", f"from = '': {PATH}"),
    "no network": ("--network=", "network = '': expected the module and name of a network"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_cannot_be_meant_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    flags, message = CASES[name]
    result = call(["train", "ppo", *flags.split(), "--quiet"], tmp_path / "runs")
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert message in result.err
    assert not (tmp_path / "runs").exists()


def test_a_batch_that_no_memory_holds_is_refused_before_there_is_a_run(tmp_path: Path) -> None:
    result = call("train dqn --agent.batch-size 1e15 --quiet", tmp_path / "runs")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "of it for the batch of a gradient step" in result.err
    assert "lower agent.batch_size" in result.err
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("command", ["train a2c", "eval", "resume", "plot", "compare", "doctor"])
def test_an_empty_directory_of_runs_is_not_this_one(command: str) -> None:
    result = call([*command.split(), "--runs="])
    assert (result.code, result.err) == (2, f"operant: error: runs = '': {PATH}\n")


def test_the_name_of_a_run_too_long_for_any_is_one_that_is_not_there(tmp_path: Path) -> None:
    result = call(["eval", "x" * 5_000], tmp_path)
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "no such run" in result.err


@pytest.mark.parametrize("text", ["[]", "[8, 8]", "8,8", "8 8"])
def test_lists_are_written_with_brackets_commas_or_spaces(text: str) -> None:
    result = call(["train", "ppo", "--dry-run", "--network.hidden", *text.split()])
    sizes = "[]" if text == "[]" else "\n  - 8\n  - 8\n"
    assert (result.code, f"hidden:{sizes}" in result.out.replace(": [", ":[")) == (0, True)
