"""Atari, alone and as a native batch: the same preprocessing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from operant.envs.env_settings import EnvConfig
from operant.envs.managers.choose import make_manager
from operant.envs.managers.native import NativeEnvManager
from operant.envs.providers.gymnasium import make_env


def manager_of(kind: Any, **kwargs: Any) -> Any:
    return make_manager(EnvConfig(id="ALE/Breakout-v5", num_envs=2, manager=kind, **kwargs), seed=0)


@pytest.mark.parametrize("kind", ["simple", "auto"])
def test_one_game_and_a_batch_show_the_same_kind_of_frames(kind: str) -> None:
    manager = manager_of(kind, atari_stack=3)
    seen = manager.reset(0)["observation"]
    assert seen.shape == (2, 3, 84, 84)
    assert seen.dtype == np.uint8
    assert seen[:, :2].sum() == 0  # nothing came before the first frame
    assert seen[:, 2].mean() == pytest.approx(41.8, abs=0.2)
    assert manager.spaces.action["action"].n == 4
    assert manager.frames_per_step == 4
    manager.close()


@pytest.mark.parametrize("seed", [2**31 - 1, 2**31, 2**32 - 1])
def test_a_batch_takes_every_seed_that_a_game_takes(seed: int) -> None:
    manager = manager_of("auto")
    assert manager.reset(seed)["observation"].shape == (2, 4, 84, 84)
    manager.close()


def test_auto_runs_atari_natively() -> None:
    manager = manager_of("auto")
    assert type(manager) is NativeEnvManager
    manager.close()


@pytest.mark.parametrize("kind", ["simple", "native"])
def test_a_time_limit_counts_steps_not_frames(kind: str) -> None:
    manager = manager_of(kind, time_limit=5)
    manager.reset(0)
    noop = {"action": np.zeros(2, np.int64)}
    truncated = [manager.step(noop).truncated.tolist() for _ in range(5)]
    manager.close()
    assert truncated == [[False, False]] * 4 + [[True, True]]


def test_the_full_action_set_can_be_asked_for_in_both_forms() -> None:
    for kind in ("simple", "native"):
        manager = manager_of(kind, kwargs={"full_action_space": True})
        assert manager.spaces.action["action"].n == 18
        manager.close()


def test_rewards_are_raw() -> None:
    config = EnvConfig(id="ALE/Qbert-v5", num_envs=2)
    manager = make_manager(config, seed=0)
    manager.reset(0)
    rng = np.random.default_rng(0)
    rewards = [manager.step({"action": rng.integers(0, 6, 2)}).reward.max() for _ in range(60)]
    manager.close()
    assert max(rewards) == 25


def test_fire_is_pressed_for_games_that_wait_for_it() -> None:
    env = make_env(EnvConfig(id="ALE/Breakout-v5"))
    env.reset(seed=0)
    frames = [env.step({"action": np.array(0)})[0]["observation"][-1] for _ in range(8)]
    assert len({frame.tobytes() for frame in frames}) > 4  # the ball moves
