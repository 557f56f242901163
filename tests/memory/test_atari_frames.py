"""Real frames, through every way by which Atari comes."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.wrappers import FrameStackObservation, TransformObservation
from windows import check_same

from operant.core.experience import HiddenState, Memo
from operant.envs.env_settings import EnvConfig
from operant.envs.managers.choose import make_manager
from operant.envs.providers.gymnasium import GymEnv
from operant.memory.replay import ExperienceReplay
from operant.memory.rollout import RolloutCache

BATCHES = [
    ("ALE/Breakout-v5", "native"),
    ("ALE/Breakout-v5", "simple"),
    ("envpool/Breakout-v5", "native"),
]


@pytest.mark.parametrize("lives", [False, True])
@pytest.mark.parametrize(("env_id", "kind"), BATCHES)
def test_frames_of_a_game_stored_once_give_the_same_samples(
    env_id: str, kind: Any, lives: bool
) -> None:
    module = "envpool" if env_id.startswith("envpool") else "ale_py"
    pytest.importorskip(module)
    limit = 70 if lives else 30
    config = EnvConfig(id=env_id, num_envs=2, manager=kind, time_limit=limit, episodic_life=lives)
    manager, random = make_manager(config, 1), np.random.default_rng(0)
    assert manager.spaces.stacked == ("observation",)
    cache = RolloutCache(80)
    observation = manager.reset(1)
    while not cache.ready():
        action = {"action": torch.from_numpy(random.integers(0, 4, 2))}
        step = manager.step({k: x.numpy() for k, x in action.items()})
        cache.write(observation, action, Memo({}, HiddenState()), step)
        observation = step.observation
    manager.close()
    once = ExperienceReplay(1000, 1, 0, stacked=("observation",))
    stacks = ExperienceReplay(1000, 1, 0)
    for memory in (once, stacks):
        memory.store(cache.read())
    assert cache.read().first[1:].any()
    assert bool(cache.read().terminated.any()) == lives
    check_same(once.sample(100, 2), stacks.sample(100, 2))


def test_stacks_that_are_changed_afterwards_are_no_stacks() -> None:
    env = FrameStackObservation(gymnasium.make("CartPole-v1"), 3)
    assert GymEnv(env).spaces.stacked == ("observation",)
    halved = TransformObservation(env, lambda x: x / 2, env.observation_space)
    assert GymEnv(halved).spaces.stacked == ()


def test_an_environment_without_stacks_has_none() -> None:
    assert GymEnv("CartPole-v1").spaces.stacked == ()
