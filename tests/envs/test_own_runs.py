"""Runs of environments of one's own, passed as objects or by name."""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from counter import Counter, CounterVectorEnv
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import RescaleAction, TimeLimit
from running import call

import operant
from operant.core.errors import EnvironmentFault, UsageError

TINY: dict[str, Any] = {
    "steps": 24,
    "threads": 1,
    "quiet": True,
    "network": {"hidden": (8,)},
    "agent": {"length": 4},
    "eval": {"episodes": 2},
}


class Own(Counter):
    """A class that a worker can import from this module."""


class Doubled(gymnasium.RewardWrapper[Any, Any]):
    def reward(self, reward: Any) -> float:
        return 2.0 * float(reward)


class OldStep(Counter):
    def step(self, action: Any) -> Any:
        return self._seen(), 1.0, False, {}


def trained(what: Any, runs: Path, **settings: Any) -> operant.Run:
    return operant.train("a2c", what, runs=runs, **{**TINY, "env": {"num_envs": 2}, **settings})


def test_a_class_is_trained_by_itself_and_by_its_name(tmp_path: Path) -> None:
    one = trained(Own, tmp_path)
    other = trained(f"{__name__}:Own", tmp_path)
    assert one.config.env.id == other.config.env.id == f"{__name__}:Own"
    logs = [(run.path / "metrics.jsonl").read_text() for run in (one, other)]
    assert logs[0] == logs[1]
    assert operant.load(one.path).eval(2) == one.eval(2)


@pytest.mark.parametrize("make", [lambda: TimeLimit(Counter(), 9), functools.partial(Counter)])
def test_what_only_this_program_has_trains_in_this_process(make: Any, tmp_path: Path) -> None:
    run = trained(make, tmp_path)
    assert run.config.sampler == "serial"
    assert run.eval(2)["eval/episodes"] == 2
    for key, value in (("sampler", "parallel"), ("env", {"manager": "subproc"})):
        with pytest.raises(UsageError, match="worker processes cannot import here:"):
            trained(make, tmp_path, **{key: value})
    code = "import sys; from operant.cli.main import main; sys.exit(main(sys.argv[1:]))"
    line = [sys.executable, "-c", code, "eval", str(run.path)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "env.id = 'here:" in done.stderr
    assert "define it at the top level of a module" in done.stderr


def test_an_instance_is_made_again_from_its_spec(tmp_path: Path) -> None:
    run = trained(
        gymnasium.make("CartPole-v1", max_episode_steps=9, render_mode="rgb_array"), tmp_path
    )
    assert (run.config.env.id, run.config.env.time_limit) == ("CartPole-v1", 9)
    assert run.config.env.kwargs == {}
    wrapped = RescaleAction(gymnasium.make("Pendulum-v1", g=3.0), np.float32(-0.5), np.float32(0.5))
    assert trained(wrapped, tmp_path).config.env.id == "here:Pendulum-v1"


def test_an_instance_without_a_spec_is_refused_with_its_class(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="pass the class Own, or a function"):
        trained(Own(), tmp_path)
    with pytest.raises(UsageError, match="this wrapper does not record its arguments"):
        trained(Doubled(gymnasium.make("CartPole-v1")), tmp_path)


def test_settings_of_instance_and_run_go_together(tmp_path: Path) -> None:
    run = operant.train(
        "a2c",
        env={"id": Own, "wrappers": [Doubled, f"{__name__}:Doubled"], "num_envs": 2},
        runs=tmp_path,
        **TINY,
    )
    assert run.config.env.wrappers == (f"{__name__}:Doubled",) * 2
    plain = trained(Own, tmp_path)
    assert run.config.env.id == plain.config.env.id
    rewards = [one.eval(2)["eval/mean_reward"] for one in (plain, run)]
    assert rewards[1] > 2 * rewards[0] > 0  # 4 times as much, up to the policy


def test_a_vector_environment_says_how_many_there_are(tmp_path: Path) -> None:
    fns: Any = [Counter] * 3
    vector = SyncVectorEnv(fns, autoreset_mode=AutoresetMode.SAME_STEP)
    run = operant.train("a2c", vector, runs=tmp_path, **TINY)
    assert run.config.env.num_envs == 3
    assert run.eval(2)["eval/episodes"] == 2
    with pytest.raises(UsageError, match=r"env.num_envs = 2: .* that was passed has 3; leave"):
        trained(vector, tmp_path)
    made = gymnasium.make_vec("CartPole-v1", num_envs=3, vectorization_mode="vector_entry_point")
    assert operant.train("a2c", made, runs=tmp_path, **TINY).config.env.num_envs == 3


def test_a_vector_environment_that_exists_once_is_not_evaluated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    vector = CounterVectorEnv(3, AutoresetMode.NEXT_STEP)
    run = operant.train("a2c", vector, runs=tmp_path, **{**TINY, "quiet": False})
    assert (run.config.env.num_envs, run.config.eval.every) == (3, None)
    told = capsys.readouterr()
    assert "there is no copy of the environments to try it on" in told.err
    assert "no evaluation: here:CounterVectorEnv exists once, and trains; pass a" in told.out
    assert run.eval(3)["eval/episodes"] == 3  # afterwards it is free


def test_the_old_api_is_refused_before_there_is_a_run(tmp_path: Path) -> None:
    with pytest.raises((UsageError, EnvironmentFault), match="step returns 4 values, as in"):
        trained(OldStep, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_limit_of_a_function_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = trained(lambda: TimeLimit(Own(), 3), tmp_path)
    assert run.config.eval.max_steps == 0


@pytest.mark.parametrize("sampler", ["parallel", "serial"])
def test_a_name_on_the_command_line_trains_resumes_and_is_evaluated(
    sampler: str, tmp_path: Path
) -> None:
    flags = f"--sampler {sampler} --env.wrappers {__name__}:Doubled --env.num-envs 2"
    line = f"train a2c --env.id {__name__}:Own {flags} --steps 40 --agent.length 4 --quiet --name x"
    assert call(line, tmp_path).code == 0
    assert call("resume x --steps 60 --quiet", tmp_path).code == 0
    evaluated = call("eval x --episodes 2", tmp_path)
    assert (evaluated.code, evaluated.out.startswith(f"{__name__}:Own: ")) == (0, True)


class Masked(Counter):
    """Has a mask among its observations, of which only the newest counts."""

    def reset(self, **kwargs: Any) -> Any:
        observation, info = super().reset(**kwargs)
        return observation, {**info, "action_mask": np.ones(3, np.int8)}

    def step(self, action: Any) -> Any:
        *rest, info = super().step(action)
        return (*rest, {**info, "action_mask": np.ones(3, np.int8)})


@pytest.mark.parametrize("env", ["CartPole-v1", Own, Masked])
def test_stacked_frames_are_trained_saved_and_acted_on(env: Any, tmp_path: Path) -> None:
    settings = {**TINY, "env": {"frame_stack": 3, "num_envs": 2}}
    run = operant.train("ppo", env, runs=tmp_path, **settings)
    found = operant.load(run.path)
    policy = found.policy()
    observation = np.zeros(policy.observation_space.shape or (), np.float32)
    action = policy(observation, action_mask=np.ones(3, bool) if env is Masked else None)
    assert policy.action_space.contains(action)
    assert found.eval(1)["eval/episodes"] == 1
