"""`operant check-env`: each fault of an environment is one sentence with its remedy."""

from __future__ import annotations

import json
import time
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces as gs
from gymnasium.wrappers import TimeLimit
from running import call

import operant
from operant.core.errors import UsageError

Reset = tuple[Any, dict[str, Any]]
Step = tuple[Any, Any, bool, bool, dict[str, Any]]


class Fine(gymnasium.Env[Any, Any]):
    """Nothing is wrong with it; each class below breaks one thing."""

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012  # as Gymnasium types it
    observation_space: gymnasium.Space[Any] = gs.Box(-1, 1, (2,), np.float32)
    action_space: gymnasium.Space[Any] = gs.Discrete(2)
    ends_after = 10

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        super().reset(seed=seed)
        self.t = 0
        return self.look(), self.tell()

    def step(self, action: Any) -> Step:
        self.t += 1
        return self.look(), self.pay(), self.t >= self.ends_after, False, self.tell()

    def look(self) -> Any:
        return self.np_random.uniform(-1, 1, 2).astype(np.float32)

    def pay(self) -> Any:
        return 1.0

    def tell(self) -> Any:
        return {}


class Outside(Fine):
    def look(self) -> Any:
        return np.array([0, 3 if self.t == 4 else 0], np.float32)


class Double(Fine):
    def look(self) -> Any:
        return np.zeros(2)


class Shape(Fine):
    def look(self) -> Any:
        return np.zeros(3 if self.t else 2, np.float32)


class Text(Fine):
    def look(self) -> Any:
        return "left" if self.t else np.zeros(2, np.float32)


class Nan(Fine):
    def look(self) -> Any:
        return np.array([0, np.nan if self.t == 3 else 0], np.float32)


class NoReward(Fine):
    def pay(self) -> Any:
        return None


class NanReward(Fine):
    def pay(self) -> Any:
        return float("nan")


class Unseeded(Fine):
    def look(self) -> Any:
        return np.array([time.perf_counter() % 1, 0], np.float32)


class NeedsSeed(Fine):
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Reset:
        if seed is None:
            raise ValueError("a seed is needed")
        return super().reset(seed=seed, options=options)


class LateMask(Fine):
    def tell(self) -> Any:
        return {"action_mask": np.ones(2, bool)} if self.t else {}


class GrowingMask(Fine):
    def tell(self) -> Any:
        return {"action_mask": np.ones(3 if self.t == 2 else 2, bool)}


class NothingAllowed(Fine):
    def tell(self) -> Any:
        return {"action_mask": np.full(2, self.t != 3)}


class Endless(Fine):
    ends_after = 10**9


class OldStep(Fine):
    def step(self, action: Any) -> Any:
        return self.look(), 1.0, False, {}


class OldReset(Fine):
    def reset(self, **_: Any) -> Any:
        self.t = 0
        return self.look()


class OldSeed(Fine):
    def seed(self, seed: int) -> None:
        self.start = seed

    def reset(self) -> Any:  # type: ignore[override]  # the old API
        self.t = 0
        return self.look(), {}


class Alias(Fine):
    def look(self) -> Any:
        if not self.t:
            self.shown = np.zeros(2, np.float32)
        self.shown[0] = self.t / 20
        return self.shown


class ListInfo(Fine):
    def tell(self) -> Any:
        return [] if self.t else {}


class EndlessActions(Fine):
    action_space = gs.Box(-np.inf, np.inf, (1,), np.float32)


class Raises(Fine):
    def pay(self) -> Any:
        return 1 / (self.t - 5)


class NoOptions(Fine):
    def reset(self, *, seed: int | None = None) -> Reset:  # type: ignore[override]  # the fault
        return super().reset(seed=seed)


FAULTS: dict[type[Fine], str] = {
    Outside: "observation 'observation' = [0. 3.] is outside of Box(-1.0, 1.0, (2,), float32)",
    Double: "observation 'observation' is float64; return float32, as its space says",
    Shape: "observation 'observation' has shape (3,); return (2,), as its space says",
    Text: "observation 'observation' is a str; return numbers in Box",
    Nan: "observation 'observation' is NaN; return finite numbers",
    NoReward: "the reward is None; return one number",
    NanReward: "the reward is nan; return a finite number",
    Unseeded: "the same seed gives different episodes; draw every random number from `self.np",
    NeedsSeed: "reset raises ValueError: a seed is needed",
    LateMask: "info has 'action_mask', which it lacked at the first reset",
    GrowingMask: "info 'action_mask' has shape (3,), and had (2,); keep one shape",
    NothingAllowed: "'action_mask' allows no action; allow at least one, or end the episode",
    Endless: "no episode ended in 60 random steps, and there is no time limit; set",
    OldStep: "step returns 4 values, as in the old API of gym; return `observation, reward, term",
    OldReset: "reset returns only a ndarray, as in the old API of gym; return `observation, info`",
    OldSeed: "reset takes no `seed`, as in the old API of gym with its method `seed`; write `def",
    Alias: "observation 'observation' is the same array at every step",
    ListInfo: "the info that step returns is a list; return a dict",
    EndlessActions: "action 'action' is Box(-inf, inf, (1,), float32), without bounds",
    Raises: "step raises ZeroDivisionError",
    NoOptions: "reset takes no `options`; write `def reset(self, *, seed=None, options=None)`",
}


@pytest.mark.parametrize("env", FAULTS)
def test_each_fault_is_one_sentence_and_exit_code_1(env: type[Fine]) -> None:
    told = call(f"check-env {__name__}:{env.__name__} --steps 60")
    faults = [line for line in told.out.splitlines() if line.startswith("fault: ")]
    assert (told.code, len(faults)) == (1, 1)
    assert faults[0].startswith(f"fault: {FAULTS[env]}")
    assert told.err == ""


def test_an_environment_without_fault_takes_one_line() -> None:
    told = call(f"check-env {__name__}:Fine --steps 60")
    assert told == (0, f"{__name__}:Fine: no fault in 60 steps\n", "")


def test_advice_is_no_fault() -> None:
    found = operant.check_env(Plain, steps=40)
    assert not found.faults
    assert list(found.advice) == ["render"]


class Plain(Fine):
    metadata: dict[str, Any] = {}  # noqa: RUF012  # as Gymnasium types it


def test_json_tells_faults_and_advice_apart() -> None:
    told = call(f"check-env {__name__}:Nan --steps 60 --json")
    found = json.loads(told.out)
    assert (told.code, found["id"], found["steps"]) == (1, f"{__name__}:Nan", 60)
    assert [len(found[name]) for name in ("faults", "advice")] == [1, 0]


def test_arguments_and_limits_of_an_environment_count() -> None:
    assert not operant.check_env(TimeLimit(Endless(), 7), steps=20).faults
    assert not operant.check_env("CartPole-v1", steps=20, sutton_barto_reward=True).faults
    assert call("check-env CartPole-v1 --kwargs sutton_barto_reward=true --steps 20").code == 0


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Pendulum-v1", "FrozenLake-v1", "Taxi-v4"])
def test_environments_of_gymnasium_have_no_fault(env_id: str) -> None:
    found = operant.check_env(env_id, steps=50)
    assert (found.faults, found.advice) == ({}, {})


def test_what_cannot_be_checked_is_wrong_usage() -> None:
    assert "env.id = 'Cartpole-v1': no such environment" in call("check-env Cartpole-v1").err
    assert call("check-env").code == 2
    with pytest.raises(UsageError, match="makes a VectorEnv; check what makes one environment"):
        operant.check_env(lambda: gymnasium.make_vec("CartPole-v1", num_envs=2))


def test_before_training_only_what_stops_a_run_is_refused(tmp_path: Any) -> None:
    line = f"train a2c --env.id {__name__}:{{}} --steps 20 --env.num-envs 1 --quiet"
    refused = call(line.format("OldStep"), tmp_path)
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "OldStep': step returns 4 values, as in the old API of gym" in refused.err
    assert call(line.format("Alias"), tmp_path).code == 0
