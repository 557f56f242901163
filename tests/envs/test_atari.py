"""Atari, alone and as a native batch: the same preprocessing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from operant.core.errors import UsageError
from operant.envs.env_settings import EnvConfig
from operant.envs.managers.choose import make_manager
from operant.envs.managers.native import NativeEnvManager
from operant.envs.providers.gymnasium import make_env


def manager_of(kind: Any, **kwargs: Any) -> Any:
    return make_manager(EnvConfig(id="ALE/Breakout-v5", num_envs=2, manager=kind, **kwargs), seed=0)


@pytest.mark.parametrize("kind", ["simple", "auto"])
def test_one_game_and_a_batch_show_the_same_kind_of_frames(kind: str) -> None:
    manager = manager_of(kind, frame_stack=3)
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


@pytest.mark.parametrize("prefix", ["", "ale_py:"])
def test_rewards_are_raw(prefix: str) -> None:
    config = EnvConfig(id=f"{prefix}ALE/Qbert-v5", num_envs=2)
    manager = make_manager(config, seed=0)
    manager.reset(0)
    rng = np.random.default_rng(0)
    rewards = [manager.step({"action": rng.integers(0, 6, 2)}).reward.max() for _ in range(60)]
    manager.close()
    assert max(rewards) == 25


@pytest.mark.parametrize("kind", ["simple", "native"])
def test_a_game_named_with_its_module_is_the_same_game(kind: Any) -> None:
    def play(env_id: str) -> tuple[int, list[bytes]]:
        config = EnvConfig(id=env_id, num_envs=2, manager=kind, frame_skip=3, frame_stack=2)
        manager, rng = make_manager(config, seed=0), np.random.default_rng(0)
        seen = [manager.reset(0)]
        for _ in range(12):
            seen.append(manager.step({"action": rng.integers(0, 6, 2)}).observation)
        manager.close()
        return manager.frames_per_step, [x["observation"].tobytes() for x in seen]

    assert play("ale_py:ALE/Qbert-v5") == play("ALE/Qbert-v5")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("reward_clipping", r"kwargs\.reward_clipping = True.*set reward_clip = 1"),
        ("life_loss_info", r"kwargs\.life_loss_info = True.*set episodic_life = true"),
        ("episodic_life", r"kwargs\.episodic_life = True.*set episodic_life = true"),
    ],
)
def test_what_would_falsify_returns_or_steps_is_refused(setting: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        manager_of("native", kwargs={setting: True})


def test_envpool_takes_the_settings_of_atari() -> None:
    pytest.importorskip("envpool")
    config = EnvConfig(
        id="envpool/Pong-v5", num_envs=2, frame_skip=3, sticky=0.25, frame_stack=2, time_limit=50
    )
    manager: Any = make_manager(config, seed=0)
    assert manager.reset(0)["observation"].shape == (2, 2, 84, 84)
    assert manager.frames_per_step == 3
    made = manager.env.config
    manager.close()
    assert (made["frame_skip"], made["repeat_action_probability"]) == (3, 0.25)
    assert made["max_episode_steps"] == 50


def test_what_would_falsify_the_returns_of_envpool_is_refused() -> None:
    pytest.importorskip("envpool")
    with pytest.raises(UsageError, match=r"kwargs\.reward_clip = True.*set reward_clip = 1"):
        make_manager(EnvConfig(id="envpool/Pong-v5", kwargs={"reward_clip": True}), seed=0)


def test_other_tasks_of_envpool_know_nothing_of_atari() -> None:
    pytest.importorskip("envpool")
    manager = make_manager(EnvConfig(id="envpool/CartPole-v1", num_envs=2), seed=0)
    assert manager.frames_per_step == 1
    manager.close()


def test_fire_is_pressed_for_games_that_wait_for_it() -> None:
    env = make_env(EnvConfig(id="ALE/Breakout-v5"))
    env.reset(seed=0)
    frames = [env.step({"action": np.array(0)})[0]["observation"][-1] for _ in range(8)]
    assert len({frame.tobytes() for frame in frames}) > 4  # the ball moves
