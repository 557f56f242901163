"""Trained policies in other programs: the actions of evaluation, without its environments."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces as gs
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from odd_spaces import ACTIONS, OBSERVATIONS, Odd

import operant
from operant.core.errors import UsageError
from operant.session.build import build_evaluation

gymnasium.register("Odd-v0", "odd_spaces:Odd")
SMALL: dict[str, Any] = {
    "steps": 32,
    "log_every": 32,
    "quiet": True,
    "threads": 1,
    "recipe": "none",
    "sampler": "serial",
    "eval": {"every": None},
}
KINDS = [(action, "vector") for action in ACTIONS] + [("box", kind) for kind in OBSERVATIONS]


def trained(runs: Path, env_id: str = "Odd-v0", agent: str = "ppo", **settings: Any) -> operant.Run:
    env = {"num_envs": 2, **settings.pop("env", {})}
    made = operant.train(agent, env_id, runs=runs, env=env, **{**SMALL, **settings})
    return operant.load(made.path)


def score(policy: operant.Policy, env: gymnasium.Env[Any, Any], seed: int) -> float:
    """The return of one episode, played by hand."""
    (observation, info), total, ended = env.reset(seed=seed), 0.0, False
    while not ended:
        action = policy(observation, action_mask=info.get("action_mask"))
        observation, reward, terminated, truncated, info = env.step(action)
        total, ended = total + float(reward), terminated or truncated
    policy.reset()
    return total


@pytest.mark.parametrize(("action", "observation"), KINDS)
def test_actions_are_the_environments_own_and_those_of_evaluation(
    action: str, observation: str, tmp_path: Path
) -> None:
    kwargs: dict[str, Any] = {"action": action, "observation": observation}
    run = trained(tmp_path, env={"kwargs": kwargs})
    evaluation = build_evaluation(run.config, 1, 7)
    expected = evaluation.run(run.agent)[0].reward
    assert score(run.policy(), Odd(**kwargs), evaluation.seed) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("action", "observation"), KINDS)
def test_a_batch_is_what_the_vector_form_gives_and_takes(
    action: str, observation: str, tmp_path: Path
) -> None:
    kwargs: dict[str, Any] = {"action": action, "observation": observation}
    policy = trained(tmp_path, env={"kwargs": kwargs}).policy()
    envs = SyncVectorEnv([lambda: Odd(**kwargs)] * 3)
    seen, _ = envs.reset(seed=1)
    actions = policy(seen)
    assert envs.action_space.contains(actions)
    envs.step(actions)
    rows = [policy(row) for row in gymnasium.vector.utils.iterate(envs.observation_space, seen)]
    whole = gymnasium.vector.utils.iterate(envs.action_space, actions)
    for one, row in zip(whole, rows, strict=True):
        pair: Any = [gs.flatten(envs.single_action_space, x) for x in (one, row)]
        np.testing.assert_allclose(pair[0], pair[1], rtol=1e-5)


def test_one_discrete_action_is_an_int_and_a_batch_an_array(tmp_path: Path) -> None:
    policy = trained(tmp_path, env={"kwargs": {"action": "discrete"}}).policy()
    one, batch = policy(np.zeros(3)), policy(np.zeros((2, 3)))
    assert type(one) is int
    assert one in (4, 5, 6)
    assert batch.tolist() == [one, one]


def test_masks_are_an_argument(tmp_path: Path) -> None:
    run = trained(tmp_path, env={"kwargs": {"action": "discrete", "masked": True}})
    policy = run.policy()
    assert [policy(np.zeros(3), action_mask=row) for row in np.eye(3)] == [4, 5, 6]
    assert policy(np.zeros((3, 3)), action_mask=np.eye(3)).tolist() == [4, 5, 6]
    with pytest.raises(UsageError, match="action_mask is missing: the environment gives"):
        policy(np.zeros(3))
    with pytest.raises(UsageError, match="with at least one allowed"):
        policy(np.zeros(3), action_mask=np.zeros(3))
    evaluation = build_evaluation(run.config, 1, 7)
    env = Odd("discrete", masked=True)
    assert score(policy, env, evaluation.seed) == evaluation.run(run.agent)[0].reward


def test_a_mask_also_binds_a_policy_that_was_trained_without_one(tmp_path: Path) -> None:
    policy = trained(tmp_path, env={"kwargs": {"action": "discrete"}}).policy()
    assert [policy(np.zeros(3), action_mask=row) for row in np.eye(3)] == [4, 5, 6]
    with pytest.raises(UsageError, match=r"has shape \(2,\); expected \(3,\)"):
        policy(np.zeros(3), action_mask=np.ones(2))


def test_memory_and_normalisation_are_inside(tmp_path: Path) -> None:
    network = {"lstm": 8, "normalize": True}
    run = trained(tmp_path, "Pendulum-v1", steps=64, network=network)
    evaluation = build_evaluation(run.config, 1, 7)
    expected = evaluation.run(run.agent)[0].reward
    policy, env = run.policy(), gymnasium.make("Pendulum-v1")
    scores = [score(policy, env, evaluation.seed) for _ in range(2)]  # the second after a reset
    assert scores == pytest.approx([expected] * 2, rel=1e-6)


def test_reset_forgets_only_the_rows_that_are_done(tmp_path: Path) -> None:
    policy = trained(tmp_path, "Pendulum-v1", network={"lstm": 8}).policy()
    first, then = np.full((2, 3), 0.9, np.float32), np.full((2, 3), -0.5, np.float32)
    fresh = policy(then)
    policy.reset()
    policy(first)
    kept = policy(then)
    policy.reset()
    policy(first)
    policy.reset([True, False])
    mixed = policy(then)
    assert abs(fresh - kept).min() > 0
    assert mixed.tolist() == [fresh[0].tolist(), kept[1].tolist()]
    with pytest.raises(UsageError, match="1 of them, and the recurrent state is of 2 episodes"):
        policy(then[0])


def test_predict_has_the_habit_of_stable_baselines3(tmp_path: Path) -> None:
    run = trained(tmp_path, "Pendulum-v1", network={"lstm": 8})
    policy, seen = run.policy(), np.full((2, 3), 0.9, np.float32)
    fresh, later = policy(seen), policy(seen)
    action, state = run.predict(seen)
    again, _ = run.predict(seen, state, episode_start=[False, False], deterministic=True)
    anew, _ = run.predict(seen, state, episode_start=np.ones(2, bool))
    assert (action.tolist(), again.tolist()) == (fresh.tolist(), later.tolist())
    assert anew.tolist() == fresh.tolist()
    assert run.predict(seen, deterministic=False)[0].tolist() != fresh.tolist()


def test_predict_without_memory_gives_no_state(tmp_path: Path) -> None:
    action, state = trained(tmp_path, "CartPole-v1").predict(np.zeros(4, np.float32))
    assert (type(action), state) == (int, None)


@pytest.mark.parametrize(
    ("observation", "message"),
    [
        (np.zeros(5), r"'observation' has shape \(5,\); expected \(4,\) for one, or \(B, 4\)"),
        (np.zeros((2, 2, 4)), r"has shape \(2, 2, 4\)"),
        (np.zeros((0, 4)), r"has shape \(0, 4\)"),
        (np.full(4, np.nan), "'observation' is NaN; expected finite numbers"),
        (["a"] * 4, "expected float32 as its space says"),
    ],
)
def test_what_is_no_observation_is_refused(
    observation: Any, message: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    policy = cartpole(tmp_path_factory).policy()
    with pytest.raises(UsageError, match=message):
        policy(observation)


def cartpole(factory: pytest.TempPathFactory) -> operant.Run:
    runs = factory.getbasetemp() / "cartpole"
    return operant.load(next(runs.iterdir())) if runs.exists() else trained(runs, "CartPole-v1")


def test_arrays_that_torch_refuses_are_observations(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    policy = cartpole(tmp_path_factory).policy()
    seen = np.linspace(-1, 1, 4, dtype=np.float32)
    frozen = seen.copy()
    frozen.flags.writeable = False
    assert policy(seen[::-1][::-1]) == policy(frozen) == policy(seen.tolist())


def test_the_environments_module_may_be_gone(tmp_path: Path) -> None:
    source = Path(__file__).with_name("odd_spaces.py")
    module = tmp_path / "gone_env.py"
    shutil.copy(source, module)
    module.write_text(module.read_text() + "\ngymnasium.register('Gone-v0', Odd)\n")
    program = """
import json, numpy as np, operant
run = operant.{how}
rows = np.linspace(-1, 1, 30).reshape(10, 3)
policy = run.policy()
print(json.dumps([policy(row).tolist() for row in rows] + policy(rows).tolist()))
"""
    train = (
        f"train('ppo', 'gone_env:Gone-v0', runs='runs', name='x', env={{'num_envs': 2}}, **{SMALL})"
    )
    before = python(program.format(how=train), tmp_path)
    module.unlink()
    assert python(program.format(how="load('x')"), tmp_path) == before
    failed = python("import operant; operant.load('x').eval(1)", tmp_path, code=1)
    assert "gone_env" in failed


def python(program: str, folder: Path, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-B", "-c", program],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={"PYTHONPATH": f"{Path(operant.__file__).parents[1]}:.", "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == code, done.stderr
    return done.stderr if code else done.stdout


def test_a_run_without_the_file_of_spaces_makes_its_environment(tmp_path: Path) -> None:
    run = trained(tmp_path, "CartPole-v1")
    seen = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
    expected = run.policy()(seen).tolist()
    (run.path / "spaces.json").unlink()
    assert operant.load(run.path).policy()(seen).tolist() == expected


def test_same_step_vector_environments_need_only_reset_rows(tmp_path: Path) -> None:
    policy = trained(tmp_path, "CartPole-v1", network={"lstm": 4}).policy()
    envs = gymnasium.make_vec(
        "CartPole-v1",
        3,
        "sync",
        vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP},
    )
    seen, _ = envs.reset(seed=0)
    ends = 0
    for _ in range(60):
        seen, _, terminated, truncated, _ = envs.step(policy(seen))
        policy.reset(terminated | truncated)
        ends += int((terminated | truncated).sum())
    assert ends > 2
