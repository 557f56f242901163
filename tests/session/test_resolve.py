"""What `auto` stands for: by what there is, and by what a moment's watching shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import paced  # noqa: F401  # registers Paced-v0
import pytest

from operant.cli.main import main
from operant.envs.providers.gymnasium import EnvConfig, make_env
from operant.session import sampling
from operant.session.build import build, resolve
from operant.session.run_settings import RunConfig, run_config
from operant.session.try_out import try_out


def config_of(agent: str = "ppo", sampler: Any = "auto", **env: Any) -> RunConfig:
    settings: dict[str, Any] = {"id": "paced:Paced-v0", "num_envs": 8, **env}
    cls = run_config(agent)
    return cls(device="cpu", threads=1, sampler=sampler, env=EnvConfig(**settings))


@pytest.fixture(autouse=True)
def _two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "cores", lambda: 2)
    monkeypatch.setattr("operant.session.build.cores", lambda: 2)


def test_cheap_environments_stay_in_this_process() -> None:
    changes, why = sampling.choose(config_of(), "cpu")
    assert changes == {"sampler": "serial"}
    assert why.startswith("sampler serial: a step takes 0.0")


def test_environments_that_compute_get_workers() -> None:
    changes, why = sampling.choose(config_of(kwargs={"busy": 0.002}), "cpu")
    assert changes == {"sampler": "parallel"}
    assert why.startswith("sampler parallel, 2 workers: a step takes ")
    assert why.endswith(" ms of computing")


def test_environments_that_wait_get_a_process_each() -> None:
    config = config_of(kwargs={"asleep": 0.005}, num_envs=100)
    changes, why = sampling.choose(config, "cpu")
    assert (changes["sampler"], changes["env"].manager, changes["env"].workers) == (
        "serial",
        "subproc",
        64,
    )
    assert "over 64 environment processes" in why


@pytest.mark.parametrize(
    ("env", "why"),
    [
        ({"id": "CartPole-v1"}, "sampler serial: CartPole-v1 comes as a native batch"),
        ({"num_envs": 1}, "sampler serial: there is one environment"),
        ({"manager": "simple"}, ""),
    ],
)
def test_what_needs_no_watching_is_not_watched(
    env: dict[str, Any], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "pace", None)
    assert sampling.choose(config_of(**env), "cpu") == ({"sampler": "serial"}, why)


@pytest.mark.parametrize(
    ("agent", "device", "wall", "expected"),
    [
        ("ppo", "cpu", 90e-6, "serial"),
        ("ppo", "cpu", 110e-6, "parallel"),
        ("dqn", "cpu", 50e-6, "serial"),
        ("dqn", "cpu", 2e-3, "parallel"),
        ("dqn", "cuda", 2e-3, "serial"),
    ],
)
def test_workers_must_save_more_than_waking_them_costs(
    agent: str, device: str, wall: float, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "pace", lambda env: (wall, wall))
    changes, _ = sampling.choose(config_of(agent), device)
    assert changes["sampler"] == expected
    assert ("env" in changes) == (device == "cuda")


@pytest.mark.parametrize(("count", "expected"), [(64, "serial"), (128, "parallel")])
def test_cheap_environments_get_workers_when_they_are_many(
    count: int, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "pace", lambda env: (10e-6, 10e-6))
    changes, _ = sampling.choose(config_of(num_envs=count), "cpu")
    assert changes == {"sampler": expected}


def test_a_choice_that_was_made_is_kept() -> None:
    assert sampling.choose(config_of(sampler="alternating"), "cpu") == ({}, "")


def test_learning_leaves_a_core_to_an_asynchronous_sampler() -> None:
    env = EnvConfig(id="operant/MatchAction-v0", kwargs={"observation": "image"})
    cls = run_config("ppo")
    found = [
        try_out(cls(device="cpu", sampler=sampler, env=env)).config.threads
        for sampler in ("serial", "async")
    ]
    assert found == [2, 1]


def test_watching_keeps_to_masks_and_tells_computing_from_waiting() -> None:
    wall, busy = sampling.pace(EnvConfig(id="paced:Paced-v0", kwargs={"asleep": 0.01}))
    assert 0.01 <= wall < 0.05
    assert busy < wall / 2


def test_the_choice_is_printed_and_saved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "train ppo --env.id paced:Paced-v0 --env.num-envs 2 --steps 8 --agent.length 4"
    for quiet in ("", "--quiet"):
        where = tmp_path / f"runs{quiet}"
        assert main([*line.split(), "--runs", str(where), *quiet.split()]) == 0
        said = capsys.readouterr().out
        assert ("sampler serial: a step takes" in said) == (not quiet)
    (run,) = where.iterdir()
    assert "\nsampler: serial\n" in (run / "config.yaml").read_text()


def test_what_was_chosen_is_what_is_built() -> None:
    config = config_of(sampler="parallel", workers=2)
    changes, why = resolve(config, make_env(config.env).spaces)
    assert (why, changes["threads"]) == ("", 1)
    worker = build(config)
    assert type(worker.sampler).__name__ == "ParallelSampler"
    assert (worker.env.num_envs, worker.env.frames_per_step) == (8, 1)
    worker.close()
