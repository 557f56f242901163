"""Which network, observation, mask and action each agent can be combined with, and how to.

`python tests/agents/combinations.py > docs/combinations.md` writes the table that says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces as gs

from operant.agents import AGENTS
from operant.core.schedule import Schedule
from operant.core.spaces import is_mask
from operant.envs.gym import EnvConfig
from operant.envs.probe import MatchAction, Variant
from operant.networks.build import NetworkConfig
from operant.session.run_config import EvalConfig, RunConfig, run_config

AGENT_NAMES = ("a2c", "ppo", "dqn", "sac")
NETWORKS: dict[str, dict[str, Any]] = {
    "MLP": {"image": "flat"},
    "CNN": {},
    "LSTM": {"lstm": 16},
}
OBSERVATIONS = ("Box", "Dict", "image + vector")
ACTIONS = {"Discrete": "discrete", "MultiDiscrete": "multidiscrete", "Box": "box", "Dict": "dict"}
DRAWN = {  # which parts of the observation are images
    ("CNN", "Box"): ("vector",),
    ("CNN", "Dict"): ("vector", "other"),
    ("MLP", "image + vector"): ("other",),
    ("CNN", "image + vector"): ("other",),
    ("LSTM", "image + vector"): ("other",),
}
PIXELS = 2  # across, for each number of the vector that an image shows


@dataclass(frozen=True)
class Combination:
    """One cell of the table."""

    agent: str
    network: str
    observation: str
    mask: bool
    action: str

    def __str__(self) -> str:
        mask = "masked" if self.mask else "unmasked"
        return "-".join((self.agent, self.network, self.observation, mask, self.action))
