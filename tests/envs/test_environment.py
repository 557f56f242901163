"""One environment: what it admits, what it refuses, and how it says so."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from fault_env import FaultEnv
from gymnasium import spaces as gs

from operant.core.errors import EnvironmentFault, UsageError
from operant.envs.check import Guard
from operant.envs.env_settings import EnvConfig
from operant.envs.managers.choose import make_manager
from operant.envs.providers.catalog import check_env_id
from operant.envs.providers.gymnasium import GymEnv, make_env

GO = {"action": np.array(0)}


def play(mode: str) -> None:
    env = GymEnv(FaultEnv(mode=mode, at=2), index=5)
    env.reset(seed=1)
    for _ in range(2):
        env.step(GO)


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("nan", "observation 'observation' is NaN"),
        ("inf", "observation 'observation' is infinite"),
        ("shape", r"has shape \(3,\); expected \(2,\)"),
        ("dtype", "expected float32"),
        ("none", "is None; expected float32"),
        ("reward nan", "reward is nan"),
        ("reward none", "reward is None"),
        ("reward array", "expected one number"),
        ("throw", "step raised RuntimeError: the simulator broke"),
        ("sys exit", "step raised SystemExit: 0"),
    ],
)
def test_what_breaks_the_contract_is_named_with_environment_and_step(
    mode: str, message: str
) -> None:
    with pytest.raises(EnvironmentFault, match=f"Steady, environment 5, step 2: .*{message}"):
        play(mode)


def test_the_error_of_the_simulator_is_kept_as_the_cause() -> None:
    with pytest.raises(EnvironmentFault) as caught:
        play("throw")
    assert repr(caught.value.__cause__) == "RuntimeError('the simulator broke')"


@pytest.mark.parametrize("reward", [1, True, np.float64(1), np.ones((1,)), np.ones(())])
def test_a_reward_is_cast_to_a_number_where_it_is_one(reward: Any) -> None:
    assert Guard("x", gs.Discrete(2)).reward(reward) == 1.0


def test_a_missing_key_of_the_observation_is_named() -> None:
    guard = Guard("x", gs.Dict({"a": gs.Discrete(2), "b": gs.Discrete(2)}))
    with pytest.raises(EnvironmentFault, match=r"lacks a key.*'b'.*expected a, b; got a dict of a"):
        guard.observation({"a": 1})


def test_a_number_outside_its_discrete_space_is_named() -> None:
    with pytest.raises(EnvironmentFault, match=r"'observation' = 3; expected values in Discrete"):
        Guard("x", gs.Discrete(3)).observation(3)


def test_float64_where_the_space_says_float32_is_cast() -> None:
    seen = Guard("x", gs.Box(0, 1, (2,), np.float32)).observation(np.zeros(2))
    assert seen["observation"].dtype == np.float32


def test_a_batch_with_a_nan_names_the_row() -> None:
    guard = Guard("x", gs.Box(0, 1, (2,), np.float32), lead=(3,))
    rows = np.array([[0, 0], [0, 0], [0, np.nan]], np.float32)
    with pytest.raises(EnvironmentFault, match="environment 2"):
        guard.observation(rows)


@pytest.mark.filterwarnings("ignore:overflow")
def test_large_finite_numbers_are_not_taken_for_infinite() -> None:
    large = np.full(2, 3e38, np.float32)
    assert Guard("x", gs.Box(-np.inf, np.inf, (2,), np.float32)).observation(large)


class Masked(gymnasium.Env[Any, Any]):
    """Tells its mask in the info; `masks` one a step, the first for the reset."""

    observation_space = gs.Box(0, 1, (1,), np.float32)

    def __init__(self, masks: list[Any], action_space: Any = None) -> None:
        self.masks, self.t = masks, 0
        self.action_space = gs.Discrete(2) if action_space is None else action_space

    def _told(self) -> dict[str, Any]:
        mask = self.masks[self.t]
        if isinstance(mask, dict):
            return {"action_mask": {part: np.array(x, np.int8) for part, x in mask.items()}}
        return {} if mask is None else {"action_mask": np.array(mask, np.int8)}

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        self.t = 0
        return np.zeros(1, np.float32), self._told()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.t += 1
        return np.zeros(1, np.float32), 0.0, self.t == 2, False, self._told()


def test_a_mask_in_the_info_is_an_observation() -> None:
    env = GymEnv(Masked([[1, 0], [0, 1]]))
    assert env.reset()["action_mask"].tolist() == [True, False]
    assert env.step(GO)[0]["action_mask"].tolist() == [False, True]


def test_an_empty_mask_is_a_fault_but_at_an_end_means_nothing() -> None:
    env = GymEnv(Masked([[1, 0], [1, 1], [0, 0]]))
    env.reset()
    env.step(GO)
    assert env.step(GO)[0]["action_mask"].tolist() == [True, True]
    env = GymEnv(Masked([[1, 0], [0, 0]]))
    env.reset()
    with pytest.raises(EnvironmentFault, match="allows no action"):
        env.step(GO)


def test_a_mask_that_stops_coming_is_a_fault() -> None:
    env = GymEnv(Masked([[1, 0], None]))
    env.reset()
    with pytest.raises(EnvironmentFault, match="info lacks 'action_mask'"):
        env.step(GO)


@pytest.mark.parametrize("ends", [False, True])
def test_a_mask_that_comes_only_after_the_reset_is_a_fault(ends: bool) -> None:
    env = GymEnv(Masked([None, *([None] if ends else []), [0, 1]]), index=3)
    env.reset()
    if ends:
        env.step(GO)
    with pytest.raises(EnvironmentFault, match=r"environment 3.*'action_mask'.*reset.*in `reset`"):
        env.step(GO)


def test_a_mask_of_one_part_that_comes_only_after_the_reset_is_a_fault() -> None:
    parts = gs.Dict({"move": gs.Discrete(2), "say": gs.Discrete(2)})
    env = GymEnv(Masked([{"move": [1, 0]}, {"move": [1, 0], "say": [0, 1]}], parts))
    env.reset()
    with pytest.raises(EnvironmentFault, match=r"'action_mask\.say'"):
        env.step({"move": np.array(0), "say": np.array(0)})


def test_a_mask_over_a_box_action_is_refused() -> None:
    with pytest.raises(UsageError, match="only discrete actions can be masked"):
        GymEnv(Masked([[1, 0]], gs.Box(-1, 1, (2,))))


def test_cartpole_without_velocities_shows_two_numbers() -> None:
    hidden = make_env(EnvConfig(id="CartPole-v1", hide=(1, 3))).reset(seed=4)["observation"]
    whole = make_env(EnvConfig(id="CartPole-v1")).reset(seed=4)["observation"]
    assert hidden.tolist() == whole[[0, 2]].tolist()


@pytest.mark.parametrize("kind", ["simple", "subproc"])
def test_actions_of_an_agent_can_be_given_to_the_environment_itself(kind: Any) -> None:
    manager: Any = make_manager(EnvConfig(id="Pendulum-v1", num_envs=2, manager=kind), seed=0)
    manager.reset(seed=4)
    chosen = {"action": np.array([[-1.0], [0.25]], np.float32)}
    taken = manager.action_preprocessor(chosen)
    rewards = manager.step(chosen).reward
    manager.close()
    assert taken.tolist() == [[-2.0], [0.5]]
    for i, reward in enumerate(rewards):
        env = gymnasium.make("Pendulum-v1")
        env.reset(seed=4 + i)
        assert env.step(taken[i])[1] == pytest.approx(float(reward), rel=1e-6)


def test_a_time_limit_truncates() -> None:
    env = make_env(EnvConfig(id="Pendulum-v1", time_limit=3))
    env.reset(seed=0)
    zero = {"action": np.zeros(1, np.float32)}
    assert [env.step(zero)[3] for _ in range(3)] == [False, False, True]
    assert env.horizon == 3


@pytest.mark.parametrize(
    ("env_id", "message"),
    [
        ("CartPole-v11", "did you mean 'CartPole-v1'"),
        ("ALE/Pnog-v5", "did you mean 'ALE/Pong-v5'"),
        ("operant/MatchActoin-v0", "did you mean 'operant/MatchAction-v0'"),
        ("envpool/CartPol-v1", "did you mean 'CartPole-v1'"),
    ],
)
def test_an_unknown_id_gets_the_nearest_one(env_id: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_env_id(env_id)


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "mujoco", None)
    with pytest.raises(UsageError, match=r"pip install 'operant\[mujoco\]'"):
        check_env_id("HalfCheetah-v5")


def test_an_unknown_argument_of_an_environment_is_named() -> None:
    with pytest.raises(UsageError, match="gravity_on_mars"):
        make_env(EnvConfig(kwargs={"gravity_on_mars": 3.7}))


@pytest.mark.parametrize("game", ["Seaquest", "Breakout", "Freeway"])
def test_channels_of_minatar_come_first(game: str) -> None:
    pytest.importorskip("minatar")
    env = make_env(EnvConfig(id=f"MinAtar/{game}-v1"))
    env.reset(seed=0)
    rng, n = np.random.default_rng(0), env.action_space.n  # type: ignore[attr-defined]  # Discrete
    for _ in range(30):
        seen = env.step({"action": rng.integers(n)})[0]["observation"]
        state = env.env.unwrapped.game.state()  # type: ignore[attr-defined]  # MinAtar's own
        assert seen.tolist() == state.transpose(2, 0, 1).astype(float).tolist()


def test_an_environment_that_renders_gives_frames() -> None:
    env = make_env(EnvConfig(), render_mode="rgb_array")
    env.reset(seed=0)
    assert env.render().shape == (400, 600, 3)
    env.close()
    env.close()


def test_an_id_may_name_the_module_that_registers_it() -> None:
    env = make_env(EnvConfig(id="faulty:Faulty-v0"))
    assert env.reset(seed=0)["observation"].tolist() == [0, 0]
    with pytest.raises(UsageError, match="module 'no_such_module' cannot be imported"):
        check_env_id("no_such_module:Faulty-v0")


def test_an_id_without_a_version_is_the_latest() -> None:
    assert make_env(EnvConfig(id="CartPole")).env_id == "CartPole-v1"
