"""Atari 2600 games of `ale_py`, single or as a vector environment, preprocessed alike.

A game starts with up to 29 frames: FIRE for one frame where the game has that action, then no-ops.
Each action is repeated with the maximum of the last two frames, 84 x 84 grey, the last frames
stacked `[stack, 84, 84]`; rewards are raw. One seed and the same actions give the same frames in
both forms: what `ale_py` does in C++ for its vector environment, `GameStart` does for a single one.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import gymnasium
import numpy as np
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
from operant.envs.lives import LifeLoss

NAMESPACE = "ALE/"
STACK = 4  # frames in one observation, unless the configuration says
NOOPS = 30  # one more than the frames at the start of a game
SEEDS = 2**31  # the emulator takes a seed as an int
SIDE = 84
CLIPS = "clips the returns that are reported too; set reward_clip = 1, which clips for learning"
INSTEAD = "set episodic_life = true, under which a lost life ends an episode for learning only"
REFUSED = {  # arguments of vector environments
    "reward_clipping": CLIPS,
    "reward_clip": CLIPS,  # EnvPool's name
    "life_loss_info": "reports ends of episodes that go on, so that the steps after them would be "
    f"taken for resets and thrown away; {INSTEAD}",
    "episodic_life": f"ends the score at a life's end, too; {INSTEAD}",
}
TRANSPARENT = (  # wrappers that leave observations as they are
    gymnasium.RewardWrapper,
    gymnasium.ActionWrapper,
    OrderEnforcing,
    PassiveEnvChecker,
    RecordEpisodeStatistics,
    TimeLimit,
    LifeLoss,
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
        return cls(config.frame_stack or STACK, config.frame_skip, config.sticky, config.time_limit)


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


class GameStart(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Starts a game, and truncates it, frame by frame as the vector environment of `ale_py` does.

    It draws how many frames by `std::mt19937` of the seed, and gives the emulator the seed itself.
    After `limit` further frames, if that is not zero, the game is truncated. `place` is the game's
    index in a batch and the size of the batch.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], limit: int, place: tuple[int, int]) -> None:
        super().__init__(env)
        self.limit, self.frames = limit, 0
        self.index, self.batch = place
        game: Any = env.unwrapped
        self.fires = "FIRE" in game.get_action_meanings()
        self.random = np.random.RandomState()  # the same generator as `std::mt19937`

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        result = self.env.reset(seed=seed, options=options)
        self.frames = 0
        if seed is not None:
            result = self._seed(batch_seed(seed - self.index, self.batch) + self.index)
        frames = int.from_bytes(self.random.bytes(4), "little") * NOOPS >> 32
        if self.fires:
            result = self._press("FIRE")
        for _ in range(frames - self.fires):
            result = self._press("NOOP")
        return result

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, _, info = self.env.step(action)
        self.frames += 1
        truncated = self.frames >= self.limit > 0
        return observation, reward, terminated, truncated, info

    def _seed(self, seed: int) -> tuple[Any, dict[str, Any]]:
        game: Any = self.env.unwrapped
        self.random.seed(seed)
        game.ale.setInt("random_seed", seed)
        game.load_game()
        result: tuple[Any, dict[str, Any]] = self.env.reset()
        return result

    def _press(self, name: str) -> tuple[Any, dict[str, Any]]:
        # In the emulator itself: Backgammon and others leave NOOP out of their actions.
        game: Any = self.env.unwrapped
        game.ale.act(getattr(import_module("ale_py").Action, name))
        return self.env.reset() if game.ale.game_over() else (game._get_obs(), game._get_info())


def batch_seed(seed: int, num_envs: int) -> int:
    """The seed of the first game of a batch, such that the emulator takes those of all."""
    return seed % (SEEDS - num_envs)


def make(
    env_id: str, preprocess: Preprocess, place: tuple[int, int] = (0, 1), **kwargs: Any
) -> gymnasium.Env[Any, Any]:
    """A single game; `place` is its index in a batch and the size of the batch."""
    stack, skip, sticky, limit = preprocess
    _ale()
    registered = gymnasium.spec(_name(env_id)).kwargs
    settings = registered | {"frameskip": 1, "repeat_action_probability": sticky} | kwargs
    frames = limit * skip or settings["max_num_frames_per_episode"] or 0
    # The emulator would count the frames before the first action, too.
    env = gymnasium.make(
        env_id, disable_env_checker=True, **settings | {"max_num_frames_per_episode": 0}
    )
    game = GameStart(env, frames, place)
    env = AtariPreprocessing(game, noop_max=0, frame_skip=skip, screen_size=SIDE)
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
