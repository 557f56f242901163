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
from operant.core.seeds import seed_for
from operant.envs.providers.gymnasium import EnvConfig, GymEnv, make_env
from operant.report.video import Frame, write_video
from operant.session.run_settings import RunConfig

SMALLEST = 160  # pixels of a side below which a picture is enlarged


def record(config: RunConfig, agent: Agent, path: Path, episodes: int = 1) -> list[TrajInfo]:
    """Play `episodes` and write what they looked like to a .gif or .mp4."""
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # nothing is shown, so ask for no screen
    env = drawable(config.env)
    played: list[TrajInfo] = []
    try:
        fps = getattr(env.env, "metadata", {}).get("render_fps") or 30
        write_video(path, _frames(env, agent, episodes, config.seed, played), fps)
    finally:
        env.close()
    return played


def show(config: RunConfig, agent: Agent, episodes: int) -> list[TrajInfo]:
    """Play `episodes` in a window."""
    env = drawable(config.env, "human")
    played: list[TrajInfo] = []
    try:
        for i in range(episodes):
            for _ in _episode(env, agent, seed_for(config.seed, "play") + i, played):
                pass  # it draws itself
    finally:
        env.close()
    return played


def check_screen() -> None:
    """Refuse to open a window where there is none to be had."""
    if sys.platform == "linux" and not {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys():
        raise UsageError("there is no screen to play on; write a video with --record out.mp4")


def drawable(config: EnvConfig, mode: str = "rgb_array") -> GymEnv:
    """An environment that can be seen, tried out with one picture."""
    env = None
    if mode == "rgb_array":
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # else SDL complains of a missing screen
    try:
        env = make_env(config, render_mode=mode)
        env.reset(0)
        if mode == "rgb_array":
            picture(env.render())
        return env
    except Exception as error:  # graphics libraries raise what they like
        if env is not None:
            env.close()
        raise UsageError(
            f"env.id = {config.id!r} cannot be drawn (render_mode {mode!r}): "
            f"{type(error).__name__}: {error}"
        ) from error


def picture(frame: Any) -> Frame:
    """A rendered frame as bytes `[height, width, 3]`, large enough to look at."""
    pixels = np.asarray(frame)
    if pixels.ndim != 3 or pixels.dtype.kind not in "uif":
        raise UsageError(f"rendering gave {frame if frame is None else pixels.shape}, no picture")
    if pixels.dtype.kind == "f":  # colours from zero to one
        pixels = (pixels * 255).round()
    scale = -(-SMALLEST // min(pixels.shape[:2]))
    return pixels.astype(np.uint8).repeat(scale, axis=0).repeat(scale, axis=1)


def _frames(
    env: GymEnv, agent: Agent, episodes: int, seed: int, played: list[TrajInfo]
) -> Iterator[Frame]:
    for i in range(episodes):
        for _ in _episode(env, agent, seed_for(seed, "play") + i, played):
            yield picture(env.render())


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
