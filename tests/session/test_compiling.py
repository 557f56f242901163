"""When learning is compiled, and what is said where it cannot be."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from operant.agents.registry import AGENTS
from operant.core.errors import UsageError
from operant.session import compiling
from operant.session.compiling import ENOUGH, choose_compile, gradient_steps
from operant.session.compose import compose
from operant.session.run_settings import RunConfig

LONG: dict[str, Any] = {"steps": 10**9}
BROKEN = "torch.compile fails here (Error: no compiler)"


def config_of(algorithm: str = "ppo", **settings: Any) -> RunConfig:
    env = {"id": "CartPole-v1", "num_envs": 8}
    return compose(algorithm, {"env": env, **settings}, recipe="none")[0]


@pytest.fixture(autouse=True)
def _able(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_unable", str)


def test_gradient_steps_are_counted_over_the_whole_run() -> None:
    agent = {"length": 128, "minibatch": 256, "epochs": 4}
    assert gradient_steps(config_of(steps=10_240, agent=agent)) == 10 * 4 * 4
    assert gradient_steps(config_of("a2c", steps=1_000, agent={"length": 5})) == 25
    replay = {"learning_starts": 200, "updates_per_step": 0.25}
    assert gradient_steps(config_of("dqn", steps=1_000, agent=replay)) == 200


def test_a_long_run_on_vectors_is_compiled_and_says_so() -> None:
    choice, why = choose_compile(config_of(**LONG), images=False, device="cpu")
    assert choice == "on"
    assert why == "learning compiled: half a minute once, for 15,624,992 gradient steps"


@pytest.mark.parametrize(
    ("config", "images", "device"),
    [
        (config_of(), False, "cpu"),
        (config_of(**LONG), True, "cpu"),
        (config_of(**LONG), False, "cuda"),
        (config_of(**LONG, network={"lstm": 8}), False, "cpu"),
        (config_of(**LONG, compile="off"), False, "cpu"),
    ],
    ids=["short", "images", "cuda", "memory", "off"],
)
def test_other_runs_are_not_and_say_nothing(config: RunConfig, images: bool, device: str) -> None:
    assert choose_compile(config, images, device) == ("off", "")


def test_the_bound_is_where_it_says() -> None:
    agent = {"length": 1, "minibatch": 8, "epochs": 1}
    steps = [8 * ENOUGH - 1, 8 * ENOUGH]
    found = [choose_compile(config_of(steps=s, agent=agent), False, "cpu")[0] for s in steps]
    assert found == ["off", "on"]


def test_without_a_compiler_a_long_run_goes_uncompiled_and_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compiling, "_unable", lambda: BROKEN)
    assert choose_compile(config_of(**LONG), False, "cpu") == (
        "off",
        f"learning not compiled: {BROKEN}",
    )
    with pytest.raises(UsageError, match=r"compile = 'on': torch.compile fails here .*'off'"):
        choose_compile(config_of(compile="on"), False, "cpu")


@pytest.mark.parametrize("algorithm", ["dqn", "ppo"])
def test_a_memory_that_is_cut_is_refused_if_compiling_was_asked_for(algorithm: str) -> None:
    with pytest.raises(UsageError, match="compile = 'on': a network with memory"):
        choose_compile(config_of(algorithm, compile="on", network={"lstm": 8}), False, "cpu")


def test_an_agent_that_cannot_be_compiled_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(AGENTS["dqn"][0], "compile")
    with pytest.raises(UsageError, match="compile = 'on': dqn has no method compile"):
        choose_compile(config_of("dqn", compile="on"), False, "cpu")
    assert choose_compile(config_of("dqn", **LONG), False, "cpu") == ("off", "")


def test_a_missing_compiler_is_found_before_a_run_is_made(tmp_path: Path) -> None:
    line = "-m operant train ppo --env.id CartPole-v1 --steps 64 --compile on --runs"
    result = subprocess.run(
        [sys.executable, *line.split(), str(tmp_path)],
        env={**os.environ, "CXX": str(tmp_path / "none")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 2
    assert "compile = 'on': torch.compile fails here (" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())
