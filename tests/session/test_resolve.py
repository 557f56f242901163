"""What `auto` stands for: the sampler by the measured time of a step, threads, and compilation."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import paced  # noqa: F401  # registers Paced-v0
import pytest

from operant.cli.main import main
from operant.core.errors import UsageError
from operant.envs.env_settings import EnvConfig
from operant.session import resolve
from operant.session.build import build
from operant.session.compose import compose
from operant.session.resolve import (
    MIN_COMPILED_STEPS,
    choose_compile,
    choose_sampler,
    measure_step,
)
from operant.session.run_settings import RunConfig, run_config
from operant.session.try_out import try_out

LONG: dict[str, Any] = {"steps": 10**9}
BROKEN = "torch.compile fails here (Error: no compiler)"


def config_of(agent: str = "ppo", sampler: Any = "auto", **env: Any) -> RunConfig:
    settings: dict[str, Any] = {"id": "paced:Paced-v0", "num_envs": 8, **env}
    cls = run_config(agent)
    return cls(device="cpu", threads=1, sampler=sampler, env=EnvConfig(**settings))


def cartpole(algorithm: str = "a2c", **settings: Any) -> RunConfig:
    env = {"id": "CartPole-v1", "num_envs": 8}
    return compose(algorithm, {"env": env, **settings})[0]


@pytest.fixture(autouse=True)
def _this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two cores, no number of threads that was given, and a compiler that works."""
    monkeypatch.setattr(resolve, "cores", lambda: 2)
    monkeypatch.setattr(resolve, "given_threads", int)
    monkeypatch.setattr(resolve, "compile_failure", str)


def test_fast_environments_stay_in_this_process() -> None:
    changes, why = choose_sampler(config_of(), "cpu")
    assert changes == {"sampler": "serial"}
    assert why.startswith("sampler serial: a step takes 0.0")


def test_environments_that_compute_get_workers() -> None:
    changes, why = choose_sampler(config_of(kwargs={"busy": 0.002}), "cpu")
    assert changes == {"sampler": "parallel"}
    assert why.startswith("sampler parallel, 2 workers: a step takes ")
    assert why.endswith(" ms of computing")


def test_environments_that_wait_get_a_process_each() -> None:
    config = config_of(kwargs={"asleep": 0.005}, num_envs=100)
    changes, why = choose_sampler(config, "cpu")
    assert (changes["sampler"], changes["env"].manager, changes["env"].workers) == (
        "serial",
        "subproc",
        64,
    )
    assert "over 64 environment processes" in why


@pytest.mark.parametrize(
    ("env", "why"),
    [
        ({"id": "CartPole-v1"}, "sampler serial: CartPole-v1 is vectorized natively"),
        ({"num_envs": 1}, "sampler serial: there is one environment"),
        ({"manager": "simple"}, ""),
    ],
)
def test_what_needs_no_measuring_is_not_measured(
    env: dict[str, Any], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolve, "measure_step", None)
    assert choose_sampler(config_of(**env), "cpu") == ({"sampler": "serial"}, why)


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
    monkeypatch.setattr(resolve, "measure_step", lambda env: (wall, wall))
    changes, _ = choose_sampler(config_of(agent), device)
    assert changes["sampler"] == expected
    assert ("env" in changes) == (device == "cuda")


@pytest.mark.parametrize(("count", "expected"), [(64, "serial"), (128, "parallel")])
def test_fast_environments_get_workers_when_they_are_many(
    count: int, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolve, "measure_step", lambda env: (10e-6, 10e-6))
    changes, _ = choose_sampler(config_of(num_envs=count), "cpu")
    assert changes == {"sampler": expected}


def test_a_sampler_that_was_named_is_kept() -> None:
    assert choose_sampler(config_of(sampler="alternating"), "cpu") == ({}, "")


def test_learning_leaves_a_core_to_an_asynchronous_sampler() -> None:
    env = EnvConfig(id="operant/MatchAction-v0", kwargs={"observation": "image"})
    cls = run_config("ppo")
    found = [
        try_out(cls(device="cpu", sampler=sampler, env=env)).config.threads
        for sampler in ("serial", "async")
    ]
    assert found == [2, 1]


@pytest.mark.parametrize(("hidden", "expected"), [((64, 64), 1), ((512, 512), 2)])
def test_large_layers_get_all_cores(hidden: tuple[int, ...], expected: int) -> None:
    config = cartpole("a2c", agent={"length": 32}, network={"hidden": list(hidden)})
    assert resolve.choose_threads(config, images=False) == expected


def test_measuring_keeps_to_masks_and_tells_computing_from_waiting() -> None:
    wall, cpu = measure_step(EnvConfig(id="paced:Paced-v0", kwargs={"asleep": 0.01}))
    assert 0.01 <= wall < 0.05
    assert cpu < wall / 2


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


def test_what_was_tried_out_is_what_is_built() -> None:
    trial = try_out(config_of(sampler="parallel", workers=2, time_limit=99))
    assert (trial.why, trial.config.threads, trial.config.eval.every) == ("", 1, 10_000)
    worker = build(trial)
    assert worker.agent is trial.agent
    assert type(worker.sampler).__name__ == "ParallelSampler"
    assert (worker.env.num_envs, worker.frames_per_step) == (8, 1)
    worker.close()


def test_a_long_run_on_vectors_is_compiled_and_says_so() -> None:
    choice, why = choose_compile(cartpole(**LONG), images=False, device="cpu")
    assert choice == "on"
    assert why == "learning compiled: half a minute once, for 25,000,000 gradient steps"


@pytest.mark.parametrize(
    ("config", "images", "device"),
    [
        (cartpole(), False, "cpu"),
        (cartpole(**LONG), True, "cpu"),
        (cartpole(**LONG), False, "cuda"),
        (cartpole(**LONG, network={"lstm": 8}), False, "cpu"),
        (cartpole(**LONG, compile="off"), False, "cpu"),
    ],
    ids=["short", "images", "cuda", "recurrent", "off"],
)
def test_other_runs_are_not_and_say_nothing(config: RunConfig, images: bool, device: str) -> None:
    assert choose_compile(config, images, device) == ("off", "")


def test_enough_gradient_steps_are_what_it_takes_to_compile() -> None:
    steps = [8 * MIN_COMPILED_STEPS - 1, 8 * MIN_COMPILED_STEPS]
    configs = [cartpole(steps=count, agent={"length": 1}) for count in steps]
    assert [choose_compile(config, False, "cpu")[0] for config in configs] == ["off", "on"]


def test_without_a_compiler_a_long_run_goes_uncompiled_and_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(resolve, "compile_failure", lambda: BROKEN)
    assert choose_compile(cartpole(**LONG), False, "cpu") == (
        "off",
        f"learning not compiled: {BROKEN}",
    )
    with pytest.raises(UsageError, match=r"compile = 'on': torch.compile fails here .*'off'"):
        choose_compile(cartpole(compile="on"), False, "cpu")


@pytest.mark.parametrize("algorithm", ["dqn", "ppo"])
def test_a_recurrent_network_is_refused_if_compiling_was_asked_for(algorithm: str) -> None:
    with pytest.raises(UsageError, match="compile = 'on': a recurrent network is unrolled"):
        choose_compile(cartpole(algorithm, compile="on", network={"lstm": 8}), False, "cpu")


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
