"""A run is built one way, and every part of it is made once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import paced
import pytest

from operant.agents.registry import AGENTS
from operant.envs.managers.subproc import SubProcEnvManager
from operant.session.build import build, build_evaluation
from operant.session.compose import compose
from operant.session.runner import Runner
from operant.session.session import Session
from operant.session.try_out import try_out

TINY: dict[str, Any] = {
    "steps": 96,
    "threads": 1,
    "log_every": 32,
    "agent": {"length": 8},
    "env": {"id": "paced:Paced-v0", "num_envs": 4, "workers": 2},
    "network": {"hidden": [8]},
    "eval": {"episodes": 1},
}


class Counted:
    """Counts the calls of a function before it passes them on."""

    def __init__(self, function: Any) -> None:
        self.function, self.calls = function, 0
        self.__wrapped__ = function  # whose annotations count

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        return self.function(*args, **kwargs)


class Shown:
    """A view that remembers what it was told."""

    def __init__(self) -> None:
        self.entered: list[bool] = []
        self.steps: list[int] = []

    def __enter__(self) -> Self:
        self.entered.append(True)
        return self

    def __exit__(self, *_: object) -> None:
        self.entered.append(False)

    def update(self, step: int, metrics: Mapping[str, float]) -> None:
        assert metrics["time/total_timesteps"] == step
        self.steps.append(step)


@pytest.mark.parametrize("sampler", ["serial", "parallel", "async"])
def test_a_run_makes_its_agent_once(
    sampler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = AGENTS["a2c"].cls
    create = Counted(agent.create)
    monkeypatch.setattr(agent, "create", create)
    config, _ = compose("a2c", {**TINY, "sampler": sampler})
    with Session.create(config, tmp_path, []) as session:
        runner = Runner(session)
        assert runner.container.agent is session.trial.agent
        runner.close()
    assert create.calls == 1


def test_a_parallel_sampler_makes_no_environment_in_this_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trial = try_out(compose("a2c", {**TINY, "sampler": "parallel"})[0])
    monkeypatch.setattr(paced.Paced, "__init__", None)  # workers have a class of their own
    worker = build(trial)
    assert worker.env.spaces == trial.spaces
    worker.close()


def test_a_view_sees_every_line_of_the_log(tmp_path: Path) -> None:
    config, _ = compose("a2c", {**TINY, "sampler": "serial"})
    with Session.create(config, tmp_path, []) as session:
        runner, shown = Runner(session), Shown()
        runner.train(shown)
        runner.close()
    assert shown.entered == [True, False]
    assert shown.steps == [32, 64, 96]


def test_without_a_view_training_prints_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, _ = compose("a2c", {**TINY, "sampler": "serial"})
    with Session.create(config, tmp_path, []) as session:
        runner = Runner(session).train()
        runner.close()
    assert (runner.step, capsys.readouterr().out) == (96, "")


def test_names_of_the_package_are_those_of_its_modules() -> None:
    import operant.session as package  # noqa: PLC0415

    assert {name for name in package.__all__ if not hasattr(package, name)} == set()
    assert (package.Session, package.Runner) == (Session, Runner)


@pytest.mark.parametrize("sampler", ["parallel", "async", "alternating"])
def test_evaluation_is_in_workers_where_training_is(sampler: str) -> None:
    config, _ = compose("ppo", {**TINY, "sampler": sampler})
    manager = build_evaluation(config, 2).make_manager(2)
    manager.close()
    assert isinstance(manager, SubProcEnvManager)
