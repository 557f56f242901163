"""Whatever the autoreset mode, the same things are said to have happened."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from counter import Counter, CounterVectorEnv
from faulty import counter
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from transitions import Transition, crossings, play

from operant.core.protocols import EnvironmentManager
from operant.envs.env_settings import EnvConfig
from operant.envs.managers.choose import make_manager
from operant.envs.managers.native import NativeEnvManager
from operant.envs.managers.simple import SimpleEnvManager
from operant.envs.managers.subproc import SubProcEnvManager

ENVS = 3
SCRIPT = np.random.default_rng(3).integers(0, 3, (ENVS, 40)).tolist()


def native(mode: AutoresetMode, whole: bool = False) -> EnvironmentManager:
    return NativeEnvManager(lambda seed: CounterVectorEnv(ENVS, mode, whole))


def sync(mode: AutoresetMode) -> EnvironmentManager:
    """The mode as Gymnasium itself makes it."""
    fns: Any = [Counter] * ENVS
    return NativeEnvManager(lambda seed: SyncVectorEnv(fns, autoreset_mode=mode))


def truth() -> list[list[Transition]]:
    """Counters stepped and reset by hand."""
    return [_by_hand(7 + i, actions) for i, actions in enumerate(SCRIPT)]


def _by_hand(seed: int, actions: list[int]) -> list[Transition]:
    env, seen = Counter(), []
    before = env.reset(seed=seed)[0]
    for action in actions:
        after, reward, terminated, truncated, _ = env.step(action)
        told = (float(np.float32(reward)), terminated, truncated)
        seen.append((before.tobytes(), action, *told, after.tobytes()))
        before = env.reset()[0] if terminated or truncated else after
    return seen


FNS = [partial(counter, i) for i in range(ENVS)]
MANAGERS: dict[str, Callable[[], EnvironmentManager]] = {
    "simple": lambda: SimpleEnvManager(FNS),
    "subproc": lambda: SubProcEnvManager(FNS, workers=2),
    "next-step": lambda: native(AutoresetMode.NEXT_STEP),
    "same-step": lambda: native(AutoresetMode.SAME_STEP),
    "same-step, one array": lambda: native(AutoresetMode.SAME_STEP, whole=True),
    "disabled": lambda: native(AutoresetMode.DISABLED),
    "gymnasium next-step": lambda: sync(AutoresetMode.NEXT_STEP),
    "gymnasium same-step": lambda: sync(AutoresetMode.SAME_STEP),
    "gymnasium disabled": lambda: sync(AutoresetMode.DISABLED),
}


@pytest.mark.parametrize("name", MANAGERS)
def test_every_mode_gives_the_same_transitions(name: str) -> None:
    manager = MANAGERS[name]()
    seen = play(manager, SCRIPT)
    manager.close()
    assert seen == truth()
    assert sum(t[3] for one in seen for t in one) > 10  # tasks ended
    assert sum(t[4] for one in seen for t in one) > 10  # the clock ended some


@pytest.mark.parametrize("name", ["simple", "subproc", "gymnasium same-step"])
def test_success_is_told_where_an_episode_ended(name: str) -> None:
    manager = MANAGERS[name]()
    manager.reset(7)
    twos = {"action": np.full(ENVS, 2)}
    manager.step(twos)
    step = manager.step(twos)
    manager.close()
    assert step.infos["is_success"].tolist() == [True] * ENVS
    assert step.infos["_is_success"].tolist() == [True] * ENVS


def test_next_step_shows_the_final_observation_and_then_wastes_a_step() -> None:
    manager = native(AutoresetMode.NEXT_STEP)
    manager.reset(7)
    twos = {"action": np.full(ENVS, 2)}
    manager.step(twos)
    final, wasted = manager.step(twos), manager.step(twos)
    assert final.final_observation is None
    assert final.observation["observation"][0].tolist() == [7, 0, 2, 4]
    assert wasted.valid.tolist() == [False] * ENVS
    assert wasted.reward.tolist() == [0] * ENVS
    assert wasted.observation["observation"][0].tolist() == [7, 1, 0, 0]


def test_envpool_never_crosses_an_episode() -> None:
    manager = make_manager(EnvConfig(id="envpool/CartPole-v1", num_envs=ENVS), seed=1)
    script = np.random.default_rng(0).integers(0, 2, (ENVS, 120)).tolist()
    seen = play(manager, script)
    manager.close()
    assert sum(crossings(one) for one in seen) == 0
    assert sum(t[3] for one in seen for t in one) > 9
    lasts = [np.frombuffer(t[5], np.float32) for one in seen for t in one if t[3]]
    assert min(np.abs(last).max() for last in lasts) > 0.2  # fallen, not freshly reset


def test_envpool_obeys_the_dynamics_of_gymnasium_within_every_valid_transition() -> None:
    manager = make_manager(EnvConfig(id="envpool/CartPole-v1", num_envs=1), seed=1)
    seen = play(manager, np.random.default_rng(0).integers(0, 2, (1, 100)).tolist())[0]
    manager.close()
    env: Any = make_manager(EnvConfig(manager="simple", num_envs=1), seed=0)
    env.reset(0)
    for was, action, _, terminated, _, became in seen:
        env.envs[0].env.unwrapped.state = np.frombuffer(was, np.float32).astype(float)
        env.envs[0].env.unwrapped.steps_beyond_terminated = None
        after, _, ended, _, _ = env.envs[0].step({"action": np.array(action)})
        assert np.allclose(after["observation"], np.frombuffer(became, np.float32), atol=1e-5)
        assert ended == terminated


def test_ale_gives_the_same_transitions_in_next_step_and_same_step() -> None:
    script = np.random.default_rng(0).integers(0, 4, (2, 30)).tolist()
    seen = []
    for mode in ("NextStep", "SameStep"):
        kwargs = {"autoreset_mode": mode}
        config = EnvConfig(id="ALE/Breakout-v5", num_envs=2, time_limit=9, kwargs=kwargs)
        manager = make_manager(config, seed=1)
        seen.append(play(manager, script))
        manager.close()
    assert [crossings(one) for both in seen for one in both] == [0] * 4
    assert sum(t[4] for t in seen[0][0]) == 3
    assert seen[0] == seen[1]
