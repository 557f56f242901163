"""The settings of environments, as the command line, YAML files and Python give them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from operant.core.config import Config, Count, CountOrZero, Fraction, NotNegative, Range

Manager = Literal["auto", "simple", "subproc", "native"]
MAX_FRAMES = 1_024
Seconds = Annotated[float, Range(0, 1e6, above=True)]  # the system cannot wait for much longer


@dataclass(frozen=True, kw_only=True)
class EnvConfig(Config):
    """Which environments to run, and how many."""

    id: str = "CartPole-v1"  # Gymnasium id, `module:id`, `module:Class`, or `envpool/<task>`
    num_envs: Count = 8  # number of parallel environments
    manager: Manager = "auto"  # vector environment: auto is native if the task has one, else simple
    workers: CountOrZero = 0  # worker processes that step the environments; 0: one per CPU core
    kwargs: dict[str, Any] = field(default_factory=dict)  # keyword arguments of the environment
    wrappers: tuple[str, ...] = ()  # Gymnasium wrappers `module:Wrapper`, the outermost last
    frame_stack: Annotated[int, Range(0, MAX_FRAMES)] = (
        0  # observations stacked in one; 0: four for Atari, else one
    )
    frame_skip: Annotated[int, Range(1, MAX_FRAMES)] = (
        4  # Atari: number of frames for which each action is repeated
    )
    sticky: Fraction = 0.0  # Atari: sticky actions, the probability of repeating the last action
    time_limit: CountOrZero = 0  # steps after which an episode is truncated; 0: as registered
    episodic_life: bool = False  # losing a life ends a training episode, but not the game's score
    hide: tuple[int, ...] = ()  # indices of a vector observation to hide from the agent
    reward_clip: NotNegative = 0.0  # clip rewards for learning to [-x, x]; 0: no clipping
    normalize_reward: bool = False  # then divide them by the deviation of the discounted return
    step_timeout: Seconds = 60.0  # seconds after which a worker that does not reply is restarted
    max_restarts: CountOrZero = 3  # restarts of a worker within ten minutes before the run fails
