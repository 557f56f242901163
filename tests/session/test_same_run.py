"""A run is resumed with the settings and libraries that it was saved with, or says what differs."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from running import call, trace, train

import operant
from operant.config import dump_yaml, load_yaml
from operant.core.errors import UsageError
from operant.session import versions
from operant.session.checkpoint.checkpoint import newest
from operant.session.same_run import Change

A2C = "train a2c --env.num-envs 2 --agent.length 8 --steps 64"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(f"{A2C} --agent.lr linear(1e-3,0)", tmp_path_factory.mktemp("runs"))


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """A run that could go on, as if it had been stopped."""
    copy = Path(shutil.copytree(trained, tmp_path / "run"))
    (copy / "done.json").unlink()
    return copy


def edit(run: Path, name: str, value: Any) -> None:
    settings = load_yaml(run / "config.yaml")
    section, _, key = name.rpartition(".")
    (settings[section] if section else settings)[key] = value
    (run / "config.yaml").write_text(dump_yaml(settings))


def resumed(run: Path, *words: str) -> tuple[int, str]:
    result = call(["resume", str(run), "--quiet", *words])
    return result.code, result.err


@pytest.mark.parametrize(
    ("name", "value", "before"),
    [
        ("agent.lr", 0.5, "'linear(0.001, 0.0, 100% of 64)'"),
        ("agent.lr", "linear(0.001, 0.0, 100% of 65)", "'linear(0.001, 0.0, 100% of 64)'"),
        ("agent.gamma", 0.5, "0.99"),
        ("env.id", "Acrobot-v1", "'CartPole-v1'"),
        ("env.kwargs", {"sutton_barto_reward": True}, "{}"),
        ("env.num_envs", 4, "2"),
        ("network.hidden", [9], "[8]"),
        ("seed", 4, "3"),
        ("algorithm", "ppo", "'a2c'"),
    ],
)
def test_a_setting_that_makes_another_run_is_refused_by_name(
    run: Path, name: str, value: Any, before: str
) -> None:
    edit(run, name, value)
    config, weights = (run / "config.yaml").read_bytes(), trace(run)
    code, said = resumed(run, "--steps", "128")
    assert (code, said.count("\n")) == (2, 1)
    assert f"{name} = {value!r}, was {before}" in said
    assert "put back what was" in said
    assert ((run / "config.yaml").read_bytes(), trace(run)) == (config, weights)


@pytest.mark.parametrize(
    ("name", "value", "more"),
    [
        ("log_every", 32, ""),
        ("checkpoint.keep", 2, ""),
        ("eval.episodes", 3, ""),
        ("env.step_timeout", 9.5, ""),
        ("steps", 96, ""),
        ("threads", 2, "; from here on numbers may round differently"),
    ],
)
def test_a_setting_that_does_not_is_told_in_one_line(
    run: Path, name: str, value: Any, more: str
) -> None:
    before = load_yaml(run / "config.yaml")
    step = newest(run / "checkpoints").step
    edit(run, name, value)
    code, said = resumed(run)
    for part in name.split("."):
        before = before[part]
    told = f"{run / 'config.yaml'}: changed since step {step}: {name} = {value!r}, was {before!r}"
    assert (code, said) == (0, f"operant: warning: {told}{more}\n")


def test_force_goes_on_with_another_run_and_from_then_on_with_that_one(run: Path) -> None:
    edit(run, "agent.gamma", 0.5)
    code, said = resumed(run, "--force", "--steps", "96")
    assert (code, said.count("from here on it is another run")) == (0, 1)
    assert resumed(run, "--steps", "128")[0] == 0
    assert load_yaml(run / "config.yaml")["agent"]["gamma"] == 0.5


@pytest.mark.parametrize(
    ("name", "before", "now", "decisive"),
    [
        ("sampler", "serial", "parallel", False),
        ("sampler", "serial", "async", True),
        ("env.manager", "simple", "subproc", False),
        ("env.manager", "simple", "native", True),
    ],
)
def test_what_gives_the_same_rollouts_is_the_same_run(
    name: str, before: str, now: str, decisive: bool
) -> None:
    assert Change(name, before, now).decisive == decisive


def test_a_run_that_nobody_touched_says_nothing(run: Path) -> None:
    assert resumed(run) == (0, "")


def test_python_refuses_and_forces_as_the_command_line_does(run: Path) -> None:
    edit(run, "agent.gamma", 0.5)
    with pytest.raises(UsageError, match=r"agent\.gamma = 0\.5, was 0\.99"):
        operant.resume(run, quiet=True)
    with pytest.raises(UsageError, match="steps = 0: expected"):
        operant.resume(run, steps=0)
    longer = operant.resume(run, steps=96, force=True, quiet=True)
    assert longer.config.steps == 96 <= newest(run / "checkpoints").step
    assert operant.resume(run).path == longer.path  # finished


def test_other_libraries_are_told_one_by_one(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = versions.versions()
    others = here | {"torch": "99.1", "python": "3.99.0"}
    monkeypatch.setattr(versions, "versions", lambda: others)
    code, said = resumed(run)
    assert (code, said.count("\n")) == (0, 1)
    named = re.findall(r"(\w+) ([^ ]+), here ([^;:]+)", said)
    assert named == [
        ("python", here["python"], "3.99.0"),
        ("torch", here["torch"], "99.1"),
    ]
    assert "not bit for bit" in said


def test_a_checkpoint_holds_the_versions_of_all_that_computes(run: Path) -> None:
    held = newest(run / "checkpoints").manifest["versions"]
    assert sorted(held) == ["gymnasium", "numpy", "operant", "python", "torch"]


def test_a_schedule_that_is_stretched_says_where_it_jumps(run: Path) -> None:
    step = newest(run / "checkpoints").step
    code, said = resumed(run, "--steps", "128")
    assert (code, said.count("\n")) == (0, 1)
    assert f"agent.lr goes from 0 to {1e-3 * (1 - step / 128):.3g} at step {step}" in said
    assert "now linear(0.001, 0.0, 100% of 128)" in said


def test_a_schedule_in_steps_does_not_jump(tmp_path: Path) -> None:
    run = train(f"{A2C} --agent.lr linear(1e-3,1e-4,200)", tmp_path)
    assert resumed(run, "--steps", "128") == (0, "")


def test_doctor_tells_changed_settings_and_other_libraries(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(run, "agent.gamma", 0.5)
    edit(run, "log_every", 32)
    monkeypatch.setattr(versions, "versions", lambda: {"numpy": "0.1"})
    result = call(["doctor", str(run)])
    path = newest(run / "checkpoints").path
    assert result.code == 0
    assert f"note: {path}: was saved with numpy " in result.out
    assert f"agent.gamma = 0.5, was 0.99 at {path.name}; resuming needs --force" in result.out
    assert f"log_every = 32, was 64 at {path.name}\n" in result.out


def test_a_flipped_byte_in_the_log_is_told_when_the_run_is_resumed(run: Path) -> None:
    log = run / "metrics.jsonl"
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 1
    log.write_bytes(content)
    code, said = resumed(run)
    told = f"operant: warning: {log}: was altered since its checkpoint; what it shows may be wrong"
    assert (code, said) == (0, f"{told}\n")
