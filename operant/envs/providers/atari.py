"""Atari 2600 games of `ale_py`, single or as a vector environment, preprocessed alike.

Up to 30 no-ops at reset, FIRE where a game waits for it, each action repeated with the maximum of
the last two frames, 84 x 84 grey, the last frames stacked `[stack, 84, 84]`; rewards are raw.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import gymnasium
from gymnasium.wrappers import (
    AtariPreprocessing,
    FrameStackObservation,
    OrderEnforcing,
    PassiveEnvChecker,
    RecordEpisodeStatistics,
    TimeLimit,
)

from operant.core.errors import UsageError
from operant.envs.env_settings import EnvConfig

NAMESPACE = "ALE/"
NOOPS = 30
SIDE = 84
CLIPS = "clips the returns that are reported too; set reward_clip = 1, which clips for learning"
REFUSED = {  # arguments of vector environments
    "reward_clipping": CLIPS,
    "reward_clip": CLIPS,  # EnvPool's name
    "life_loss_info": "reports ends of episodes that go on, so that the steps after them would be "
    "taken for resets and thrown away; leave it out",
}
TRANSPARENT = (  # wrappers that leave observations as they are
    gymnasium.RewardWrapper,
    gymnasium.ActionWrapper,
    OrderEnforcing,
    PassiveEnvChecker,
    RecordEpisodeStatistics,
    TimeLimit,
)


class Preprocess(NamedTuple):
    """How frames become observations."""

    stack: int  # frames in one observation
    frame_skip: int
    sticky: float  # probability of repeating the last action
    time_limit: int  # steps; 0: as registered

    @classmethod
    def of(cls, config: EnvConfig) -> Preprocess:
        """The Atari settings of a configuration."""
        return cls(config.atari_stack, config.frame_skip, config.sticky, config.time_limit)


def is_atari(env_id: str) -> bool:
    """Whether this id is an Atari game, also with the module that registers it in front."""
    return _name(env_id).startswith(NAMESPACE)


def _name(env_id: str) -> str:
    return env_id.rpartition(":")[2]


def refuse(env_id: str, kwargs: dict[str, Any]) -> None:
    """Raise an error for arguments that would falsify what a run reports or learns from."""
    for name, why in REFUSED.items():
        if kwargs.get(name):
            raise UsageError(f"id = {env_id!r}: kwargs.{name} = {kwargs[name]!r} {why}")


class FireReset(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Presses FIRE, the action of this number, after a reset, for games that wait for it."""

    def __init__(self, env: gymnasium.Env[Any, Any], fire: int) -> None:
        super().__init__(env)
        self.fire = fire

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        self.env.reset(**kwargs)
        observation, _, terminated, truncated, info = self.env.step(self.fire)
        return self.env.reset() if terminated or truncated else (observation, info)


def make(env_id: str, preprocess: Preprocess, **kwargs: Any) -> gymnasium.Env[Any, Any]:
    """A single game."""
    stack, skip, sticky, limit = preprocess
    kwargs = {"frameskip": 1, "repeat_action_probability": sticky} | kwargs
    _ale()
    env = gymnasium.make(env_id, disable_env_checker=True, **kwargs)
    meanings = env.unwrapped.get_action_meanings()  # type: ignore[attr-defined]  # AtariEnv's own
    noops = NOOPS if meanings[0] == "NOOP" else 0  # Backgammon and VideoCheckers have none
    env = AtariPreprocessing(env, noop_max=noops, frame_skip=skip, screen_size=SIDE)
    if "FIRE" in meanings:
        env = FireReset(env, meanings.index("FIRE"))
    if limit:
        env = TimeLimit(env, limit)
    return FrameStackObservation(env, stack, padding_type="zero")


def make_vector(env_id: str, num_envs: int, preprocess: Preprocess, **kwargs: Any) -> Any:
    """A vector environment of one game."""
    refuse(env_id, kwargs)
    stack, skip, sticky, limit = preprocess
    spec = gymnasium.spec(_name(env_id))
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


def stacks_frames(env: gymnasium.Env[Any, Any]) -> bool:
    """Whether observations are stacks of frames that nothing changes afterwards."""
    while isinstance(env, TRANSPARENT):
        env = env.env
    return isinstance(env, FrameStackObservation) and env.stack_size > 1


def is_ale_vector(env: Any) -> bool:
    """Whether a vector environment is one of `ale_py`, whose observations are stacks of frames."""
    return any(kind.__module__.startswith("ale_py.") for kind in type(env).__mro__)


def _ale() -> Any:
    """The module of the emulator, which prints a banner unless its log level is raised."""
    ale = import_module("ale_py")
    ale.ALEInterface.setLoggerMode(ale.LoggerMode.Error)
    return ale
