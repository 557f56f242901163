"""Spaces by name: what an agent sees and does, whatever structure the environment gave them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces as gs

Shape = tuple[int, ...]
Space = gym.Space[Any]
FREE_STD = "log_std."  # outputs so named are log deviations that ignore the observation
MASK = "action_mask"  # an observation so named says which discrete actions are allowed

AGENTS = "agents"  # in the info of a step, and in the record: what came to each of several agents
AGENT_FIELDS: dict[str, np.dtype[Any]] = {  # what is told of each
    "reward": np.dtype(np.float32),
    "terminated": np.dtype(np.bool_),  # it died, or its task ended
    "valid": np.dtype(np.bool_),  # it was there to act
}


@dataclass(frozen=True)
class Spaces:
    """What an environment shows and takes, by name. Actions are as agents emit them:

    discrete parts count from zero, and a bounded Box spans [-1, 1]. Observations that are
    `stacked` are the last frames `[frames, ...]`, of which every step adds one and drops one.
    """

    observation: dict[str, Space]
    action: dict[str, Space]
    stacked: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()  # of several agents, their names; what is theirs is `<agent>.…`


def is_mask(name: str) -> bool:
    """Whether this observation is a mask over actions."""
    return name == MASK or name.startswith(MASK + ".")


def choices(space: Space) -> list[int]:
    """How many choices each discrete part of an action has; empty for a Box."""
    if isinstance(space, gs.Discrete):
        return [int(space.n)]
    if isinstance(space, gs.MultiDiscrete):
        return [int(n) for n in np.asarray(space.nvec).ravel()]
    if isinstance(space, gs.MultiBinary):
        return [2] * int(np.prod(space.shape))
    return []
