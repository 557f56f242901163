"""Watching a trained agent: in a window, or as a video file."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from operant.core import tree
from operant.core.errors import UsageError
from operant.core.experience import TrajInfo
from operant.core.protocols import Agent
from operant.core.seeds import seed_for
from operant.core.spaces import AGENTS
from operant.envs.env_settings import EnvConfig
from operant.envs.providers.catalog import MUJOCO, spec_of
from operant.envs.providers.gymnasium import GymEnv, make_env
from operant.report.video import Frame, write_video
from operant.session.run_settings import RunConfig

MIN_SIDE = 160  # pixels; smaller frames are enlarged


def record(config: RunConfig, agent: Agent, path: Path, episodes: int = 1) -> list[TrajInfo]:
    """Play `episodes` and write them as a video, to a .gif or .mp4 file."""
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # needs no display
    env = make_rendered_env(config.env)
    played: list[TrajInfo] = []
    try:
        fps = getattr(env.env, "metadata", {}).get("render_fps") or 30
        write_video(path, _frames(env, config, agent, episodes, played), fps)
    finally:
        env.close()
    return played


def show(config: RunConfig, agent: Agent, episodes: int) -> list[TrajInfo]:
    """Play `episodes` in a window."""
    env = make_rendered_env(config.env, "human")
    played: list[TrajInfo] = []
    try:
        for _ in _steps(env, config, agent, episodes, played):
            pass  # a window renders itself
    finally:
        env.close()
    return played


def check_display() -> None:
    """Refuse to open a window on a machine without a display."""
    if sys.platform == "linux" and not {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys():
        raise UsageError("there is no display to play on; write a video with --record out.mp4")


def make_rendered_env(config: EnvConfig, mode: str = "rgb_array") -> GymEnv:
    """An environment with this render mode, of which one frame was rendered as a test."""
    env = None
    if mode == "rgb_array":
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # else SDL fails without a display
    try:
        env = make_env(config, render_mode=mode)
        env.reset(0)
        if mode == "rgb_array":
            as_image(env.render())
        return env
    except Exception as error:  # graphics libraries raise errors of many types
        if env is not None:
            env.close()
        raise UsageError(
            f"env.id = {config.id!r} cannot be rendered (render_mode {mode!r}): "
            f"{type(error).__name__}: {error}{_remedy(config.id)}"
        ) from error


def renders(config: EnvConfig) -> bool:
    """Whether the environment says that it can be rendered to an image."""
    try:
        env = make_env(config)
    except Exception:  # one that is vectorized natively, or whatever a constructor raises
        return False
    env.close()
    return "rgb_array" in (getattr(env.env, "metadata", None) or {}).get("render_modes", ())


def _remedy(env_id: str) -> str:
    """What helps where an environment cannot be rendered, if that is known."""
    spec = spec_of(env_id)
    if spec is None or not str(spec.entry_point).startswith(MUJOCO):
        return ""
    return (
        "; MuJoCo needs a display or a library that draws without one: set the environment "
        "variable MUJOCO_GL=egl (graphics card) or MUJOCO_GL=osmesa (processor)"
    )


def as_image(frame: Any) -> Frame:
    """A rendered frame as uint8 `[height, width, 3]`, enlarged if it is small."""
    pixels = np.asarray(frame)
    if pixels.ndim != 3 or pixels.dtype.kind not in "uif":
        found = None if frame is None else pixels.shape
        raise UsageError(f"render() returned {found}; expected an image [height, width, 3]")
    if pixels.dtype.kind == "f":  # colours from zero to one
        pixels = (pixels * 255).round()
    scale = -(-MIN_SIDE // min(pixels.shape[:2]))
    return pixels.astype(np.uint8).repeat(scale, axis=0).repeat(scale, axis=1)


def _frames(
    env: GymEnv, config: RunConfig, agent: Agent, episodes: int, played: list[TrajInfo]
) -> Iterator[Frame]:
    for _ in _steps(env, config, agent, episodes, played):
        yield as_image(env.render())


def _steps(
    env: GymEnv, config: RunConfig, agent: Agent, episodes: int, played: list[TrajInfo]
) -> Iterator[None]:
    """Play episodes as long as evaluation does, yielding after each observation."""
    limit = config.eval.max_steps or sys.maxsize
    for i in range(episodes):
        steps = _episode(env, agent, seed_for(config.seed, "play") + i, limit)
        played.append((yield from steps))


def _episode(env: GymEnv, agent: Agent, seed: int, limit: int) -> Generator[None, None, TrajInfo]:
    """Play one episode without exploration, cut after `limit` steps."""
    observation, state = env.reset(seed), agent.initial_state(1)
    total, length, ended = 0.0, 0, False
    each = dict.fromkeys(env.spaces.agents, 0.0)
    yield
    while not ended and length < limit:
        batch = tree.tensors(tree.map(lambda x: np.asarray(x)[None], observation))
        action, memo = agent.act(batch, state, explore=False)
        state = memo.hidden_state
        observation, reward, terminated, truncated, info = env.step(
            {name: x[0].numpy() for name, x in action.items()}
        )
        for i, name in enumerate(each):
            each[name] += float(info[AGENTS]["reward"][i])
        total, length, ended = total + reward, length + 1, terminated or truncated
        yield
    return TrajInfo(length, total, agents=each or None)
