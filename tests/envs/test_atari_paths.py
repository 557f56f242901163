"""Atari alone and in a batch: the same seed and actions give the same frames."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from operant.envs.env_settings import EnvConfig
from operant.envs.managers.choose import make_manager
from operant.envs.providers.gymnasium import make_env, make_vector

Moment = tuple[int, bytes, float, bool, bool]  # frame number, observation, reward, both ends


def play_batch(config: EnvConfig, actions: list[int], seed: int) -> list[Moment]:
    env = make_vector(config, seed)
    observation, info = env.reset(seed=seed)
    seen: list[Moment] = [(int(info["frame_number"][0]), observation.tobytes(), 0.0, False, False)]
    for action in actions:
        observation, reward, *ends, info = env.step(np.array([action]))
        both = (bool(ends[0][0]), bool(ends[1][0]))
        frame = int(info["frame_number"][0])
        seen.append((frame, observation.tobytes(), float(reward[0]), *both))
    env.close()
    return seen


def play_alone(config: EnvConfig, actions: list[int], seed: int) -> list[Moment]:
    """Resets instead of the action that follows an end, as the batch does."""
    env: Any = make_env(config).env
    observation, info = env.reset(seed=seed)
    seen: list[Moment] = [(info["frame_number"], observation.tobytes(), 0.0, False, False)]
    for action in actions:
        if seen[-1][3] or seen[-1][4]:
            (observation, info), reward, ends = env.reset(), 0.0, (False, False)
        else:
            observation, reward, *ends, info = env.step(action)
        seen.append((info["frame_number"], observation.tobytes(), float(reward), *ends))
    env.close()
    return seen


@pytest.mark.parametrize("seed", [0, 5])
@pytest.mark.parametrize(
    ("game", "settings"),
    [
        ("Breakout", {}),
        ("Qbert", {"sticky": 0.25}),
        ("Pong", {"frame_skip": 3}),
        ("Freeway", {"time_limit": 40}),  # has no FIRE
        ("Breakout", {"kwargs": {"max_num_frames_per_episode": 150}}),
    ],
)
def test_a_game_alone_shows_what_it_shows_in_a_batch(
    game: str, settings: dict[str, Any], seed: int
) -> None:
    config = EnvConfig(id=f"ALE/{game}-v5", num_envs=1, **settings)
    actions = np.random.default_rng(seed).integers(0, 3, 400).tolist()
    alone, batch = play_alone(config, actions, seed), play_batch(config, actions, seed)
    ours, theirs = ([moment[:1] + moment[2:] for moment in seen] for seen in (alone, batch))
    assert ours == theirs
    assert [moment[1] for moment in alone] == [moment[1] for moment in batch]
    assert game == "Pong" or any(moment[3] or moment[4] for moment in batch)


@pytest.mark.parametrize("seed", [3, 2**31 - 2, 2**32 - 1])
def test_managers_seed_the_same_games_alike(seed: int) -> None:
    def play(kind: Any) -> list[bytes]:
        manager = make_manager(EnvConfig(id="ALE/Breakout-v5", num_envs=3, manager=kind), seed)
        rng, seen = np.random.default_rng(0), [manager.reset(seed)["observation"].tobytes()]
        for _ in range(20):
            step = manager.step({"action": rng.integers(0, 4, 3)})
            seen.append(step.observation["observation"].tobytes())
        manager.close()
        return seen

    assert play("simple") == play("native")
