"""Watching a trained agent."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from operant.core import tree
from operant.core.errors import UsageError
from operant.core.experience import TrajInfo
from operant.core.protocols import Agent
from operant.envs.gym import GymEnv, make_env
from operant.session.build import seed_for
from operant.session.media import Frame, write_video
from operant.session.run_config import RunConfig


def record(config: RunConfig, agent: Agent, path: Path, episodes: int = 1) -> list[TrajInfo]:
    """Play `episodes` and write what they looked like to a .gif or .mp4."""
    env = make_env(config.env, render_mode="rgb_array")
    played: list[TrajInfo] = []
    try:
        fps = getattr(env.env, "metadata", {}).get("render_fps") or 30
        write_video(path, _frames(env, agent, episodes, config.seed, played), fps)
    finally:
        env.close()
    return played


def show(config: RunConfig, agent: Agent, episodes: int) -> list[TrajInfo]:
    """Play `episodes` in a window."""
    if sys.platform == "linux" and not {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys():
        raise UsageError("there is no screen to play on; write a video with --record out.mp4")
    env = make_env(config.env, render_mode="human")
    played: list[TrajInfo] = []
    try:
        for i in range(episodes):
            for _ in _episode(env, agent, seed_for(config.seed, "play") + i, played):
                pass
    finally:
        env.close()
    return played


def _frames(
    env: GymEnv, agent: Agent, episodes: int, seed: int, played: list[TrajInfo]
) -> Iterator[Frame]:
    for i in range(episodes):
        for _ in _episode(env, agent, seed_for(seed, "play") + i, played):
            frame: Any = env.render()
            yield np.asarray(frame, dtype=np.uint8)


def _episode(env: GymEnv, agent: Agent, seed: int, played: list[TrajInfo]) -> Iterator[None]:
    """One episode without exploring, handing over after each observation."""
    observation, state = env.reset(seed), agent.initial_state(1)
    total, length, ended = 0.0, 0, False
    yield
    while not ended:
        batch = tree.tensors(tree.map(lambda x: np.asarray(x)[None], observation))
        action, memo = agent.act(batch, state, explore=False)
        state = memo.hidden_state
        observation, reward, terminated, truncated, _ = env.step(
            {name: x[0].numpy() for name, x in action.items()}
        )
        total, length, ended = total + reward, length + 1, terminated or truncated
        yield
    played.append(TrajInfo(length, total))
