"""What an environment returns wrongly in the middle of a run is one sentence that names it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces as gs

from operant.core.errors import EnvironmentFault
from operant.envs import bounds
from operant.envs.check import Guard
from operant.envs.providers.gymnasium import GymEnv

FINE = np.zeros(2, np.float32)
Returned = Callable[[], Any]


class Returning(gymnasium.Env[Any, Any]):
    """Returns what it is told to at its second step, and at its second reset."""

    action_space = gs.Discrete(2)

    def __init__(self, step: Returned, reset: Returned | None = None, **box: Any) -> None:
        about: Any = {"low": -1, "high": 1, "shape": (2,)} | box
        self.observation_space = gs.Box(**about)
        self.returned, self.again, self.t, self.resets = step, reset, 0, 0

    def fine(self) -> Any:
        return np.zeros(2, self.observation_space.dtype)

    def reset(self, **kwargs: Any) -> Any:
        self.resets += 1
        if self.again is not None and self.resets > 2:
            return self.again()
        return self.fine(), {}

    def step(self, action: Any) -> Any:
        self.t += 1
        return (self.fine(), 1.0, False, False, {}) if self.t < 2 else self.returned()


def play(env: GymEnv, steps: int = 2) -> tuple[Any, ...]:
    env.reset(0)
    return [env.step({"action": np.array(0)}) for _ in range(steps)][-1]


def broken_text() -> Any:
    class Untold(Exception):  # noqa: N818
        def __str__(self) -> str:
            raise ValueError("no text")

    raise Untold


FAULTS: dict[str, tuple[Returned, str]] = {
    "four values": (
        lambda: (FINE, 1.0, True, {}),
        "step returns 4 values, as in the old API of gym",
    ),
    "nothing": (lambda: None, "step returns only a NoneType; return `observation, reward,"),
    "info none": (
        lambda: (FINE, 1.0, False, False, None),
        "the info that step returns is a NoneType",
    ),
    "info list": (lambda: (FINE, 1.0, False, False, []), "the info that step returns is a list"),
    "ragged": (
        lambda: ([[1.0], [2.0, 3.0]], 1.0, False, False, {}),
        "which is no array; expected sh",
    ),
    "two ends": (
        lambda: (FINE, 1.0, np.array([True, False]), False, {}),
        "terminated is array([ True, False]); return True or False",
    ),
    "end as text": (
        lambda: (FINE, 1.0, False, "no", {}),
        "truncated is 'no'; return True or False",
    ),
    "success array": (
        lambda: (FINE, 1.0, True, False, {"is_success": np.array([True, False])}),
        "info 'is_success' is array([ True, False]); expected True or False",
    ),
    "reward": (
        lambda: (FINE, 1e300, False, False, {}),
        "reward is 1e+300; float32, in which networ",
    ),
    "observation": (
        lambda: (np.array([0, 1e300]), 1.0, False, False, {}),
        "has 1e+300; float32, in",
    ),
    "no text": (broken_text, "step raised Untold"),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", FAULTS)
def test_a_wrong_step_is_a_fault_with_its_place_and_remedy(name: str) -> None:
    returned, message = FAULTS[name]
    env = GymEnv(Returning(returned), 3)
    with pytest.raises(EnvironmentFault) as caught:
        play(env)
    assert str(caught.value).startswith("Returning, environment 3, step 2: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (FINE, "reset returns only a ndarray"),
        ((FINE, None), "the info that reset returns is a None"),
    ],
)
def test_a_wrong_later_reset_is_a_fault(result: Any, message: str) -> None:
    env = GymEnv(Returning(lambda: None, lambda: result))
    env.reset(0)
    with pytest.raises(EnvironmentFault, match=message):
        env.reset()


@pytest.mark.parametrize(
    ("given", "kept"), [(np.array([True]), 1), (np.float32(0), 0), (1, 1), (True, 1), (None, -1)]
)
def test_success_is_a_flag_in_whatever_type_it_comes(given: Any, kept: int) -> None:
    env = GymEnv(Returning(lambda: (FINE, 1.0, True, False, {"is_success": given})))
    *_, info = play(env)
    assert int(info.get("is_success", -1)) == kept


def test_float64_that_float32_cannot_hold_is_the_environments_fault() -> None:
    def large() -> Any:
        return np.array([0, -1e300]), 1.0, False, False, {}

    env = Returning(large, low=-np.inf, high=np.inf, dtype=np.float64)
    with pytest.raises(EnvironmentFault, match=r"'observation' has -1e\+300; float32, in which"):
        play(GymEnv(env))


@pytest.mark.parametrize("value", [-3, 300])
def test_an_integer_that_its_type_cannot_hold_does_not_wrap_around(value: int) -> None:
    def wrong() -> Any:
        return np.array([0, value]), 1.0, False, False, {}

    env = Returning(wrong, low=0, high=255, dtype=np.uint8)
    with pytest.raises(EnvironmentFault, match=f"has {value}, which uint8 cannot hold"):
        play(GymEnv(env))


def test_a_reward_of_a_batch_that_float32_cannot_hold_names_its_environment() -> None:
    guard = Guard("Task", gs.Box(-1, 1, (2,)), (3,))
    with pytest.raises(EnvironmentFault, match=r"Task, environment 1, step 0: reward has 1e\+300"):
        guard.rewards(np.array([0.0, 1e300, 1e301]))


@pytest.fixture
def _untold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "_told", set())


def out_of_bounds() -> Any:
    return np.array([0, 5], np.float32), 1.0, False, False, {}


@pytest.mark.usefixtures("_untold")
def test_an_observation_out_of_its_bounds_is_told_once_with_name_bounds_and_value() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for index in (0, 1, 0):
            play(GymEnv(Returning(out_of_bounds), index), 9)
    (told,) = [str(warning.message) for warning in caught]
    assert told.startswith(
        "Returning: observation 'observation'[1] = 5 is outside of its bounds, -1 "
    )


@pytest.mark.usefixtures("_untold")
def test_within_its_bounds_nothing_is_told() -> None:
    edge = np.array([-1, 1], np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        observation, *_ = play(GymEnv(Returning(lambda: (edge, 1.0, False, False, {}))), 9)
    assert observation["observation"].tolist() == [-1, 1]
