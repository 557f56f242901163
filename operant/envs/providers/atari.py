"""Atari 2600 through `ale_py`, one game at a time or as one native batch, preprocessed alike.

Up to 30 no-ops at reset, FIRE where a game waits for it, each action repeated with the maximum of
the last two frames, 84 x 84 grey, the last frames stacked `[stack, 84, 84]`; rewards are raw.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import gymnasium
from gymnasium.wrappers import (
    AtariPreprocessing,
    FrameStackObservation,
    OrderEnforcing,
    PassiveEnvChecker,
    RecordEpisodeStatistics,
    TimeLimit,
)

NAMESPACE = "ALE/"
NOOPS = 30
SIDE = 84
KEEPING = (  # wrappers that show what they are shown
    gymnasium.RewardWrapper,
    gymnasium.ActionWrapper,
    OrderEnforcing,
    PassiveEnvChecker,
    RecordEpisodeStatistics,
    TimeLimit,
)
Preprocess = tuple[int, int, float, int]  # stack, frame skip, sticky probability, time limit


def is_atari(env_id: str) -> bool:
    """Whether this id is an Atari game."""
    return env_id.startswith(NAMESPACE)


class FireReset(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Presses FIRE after a reset, for games that wait for it."""

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        self.env.reset(**kwargs)
        fired, _, terminated, truncated, told = self.env.step(1)
        return self.env.reset() if terminated or truncated else (fired, told)


def make(env_id: str, preprocess: Preprocess, **kwargs: Any) -> gymnasium.Env[Any, Any]:
    """One game."""
    stack, skip, sticky, limit = preprocess
    kwargs = {"frameskip": 1, "repeat_action_probability": sticky} | kwargs
    _ale()
    env = gymnasium.make(env_id, disable_env_checker=True, **kwargs)
    meanings = env.unwrapped.get_action_meanings()  # type: ignore[attr-defined]  # AtariEnv's own
    env = AtariPreprocessing(env, noop_max=NOOPS, frame_skip=skip, screen_size=SIDE)
    if "FIRE" in meanings:
        env = FireReset(env)
    if limit:
        env = TimeLimit(env, limit)
    return FrameStackObservation(env, stack, padding_type="zero")


def make_vector(env_id: str, num_envs: int, preprocess: Preprocess, **kwargs: Any) -> Any:
    """A native batch of one game."""
    stack, skip, sticky, limit = preprocess
    spec = gymnasium.spec(env_id)
    settings: dict[str, Any] = {
        "game": spec.kwargs["game"],
        "full_action_space": spec.kwargs["full_action_space"],
        "max_num_frames_per_episode": limit * skip or spec.kwargs["max_num_frames_per_episode"],
        "repeat_action_probability": sticky,
        "stack_num": stack,
        "frameskip": skip,
        "noop_max": NOOPS,
        "reward_clipping": False,
        "img_height": SIDE,
        "img_width": SIDE,
    }
    return _ale().AtariVectorEnv(num_envs=num_envs, **settings | kwargs)


def stacked(env: gymnasium.Env[Any, Any]) -> bool:
    """Whether observations are the last frames: nothing changes them after they are stacked."""
    while isinstance(env, KEEPING):
        env = env.env
    return isinstance(env, FrameStackObservation) and env.stack_size > 1


def stacked_vector(env: Any) -> bool:
    """Whether the observations of a batch are the last frames, as those of Atari batches are."""
    kinds = [kind.__module__ for kind in type(env).__mro__]
    if any(kind.startswith("envpool.atari") for kind in kinds):
        # Colours would be three entries a frame.
        return bool(env.config["stack_num"] == env.single_observation_space.shape[0])
    return any(kind.startswith("ale_py.") for kind in kinds)


def _ale() -> Any:
    """The emulator's module, without its banner."""
    ale = import_module("ale_py")
    ale.ALEInterface.setLoggerMode(ale.LoggerMode.Error)
    return ale
