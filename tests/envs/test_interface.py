"""Spaces as JSON and back: every kind, exactly."""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces as gs

from operant.core.spaces import Space
from operant.envs.env_settings import EnvConfig
from operant.envs.interface import Interface, space_from_json, space_to_json
from operant.envs.providers.gymnasium import GymEnv, make_env

THIRD = np.array([1 / 3, -0.1, np.inf], np.float32)
SPACES: dict[str, Space] = {
    "box": gs.Box(-THIRD - 1, np.array([1 / 3, 0.1, 3.4e38], np.float32), dtype=np.float32),
    "double": gs.Box(np.array([-0.1, -np.inf]), np.array([1 / 3, 5e-324]), dtype=np.float64),
    "image": gs.Box(0, 255, (4, 3, 2), np.uint8),
    "wide": gs.Box(np.iinfo(np.int64).min, np.iinfo(np.int64).max, (2,), np.int64),
    "discrete": gs.Discrete(3, start=-2),
    "multi": gs.MultiDiscrete(np.array([[2, 3], [4, 5]]), start=np.array([[1, 0], [0, -1]])),
    "one multi": gs.MultiDiscrete([3, 3]),
    "binary": gs.MultiBinary([2, 3]),
    "empty": gs.Box(0, 1, (0,), np.float32),
    "dict": gs.Dict(
        OrderedDict(z=gs.Discrete(2), a=gs.Tuple([gs.Box(0, 1, (), np.float32), gs.MultiBinary(1)]))
    ),
}


@pytest.mark.parametrize("name", SPACES)
def test_a_space_is_the_same_after_json(name: str) -> None:
    space = SPACES[name]
    text = json.dumps(space_to_json(space), allow_nan=False)
    again = space_from_json(json.loads(text))
    assert again == space
    assert (again.dtype, repr(again)) == (space.dtype, repr(space))
    if isinstance(space, gs.Dict):
        assert isinstance(again, gs.Dict)
        assert list(again.spaces) == ["z", "a"]


class Masked(gymnasium.Env[Any, Any]):
    """Shows a picture, a vector and a number, and allows some of its actions."""

    observation_space = gs.Dict(
        picture=gs.Box(0, 255, (9, 8, 3), np.uint8),
        place=gs.Discrete(4, start=1),
        vector=gs.Box(-1, 1, (2,), np.float64),
    )
    action_space = gs.Discrete(3, start=5)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return self.observation_space.sample(), {"action_mask": np.array([1, 0, 1], np.int8)}


@pytest.mark.parametrize(
    "env",
    [
        GymEnv(Masked()),
        make_env(EnvConfig(id="CartPole-v1", hide=(1, 3))),
        make_env(EnvConfig(id="Taxi-v4")),
    ],
    ids=["masked", "hidden", "one-hot"],
)
def test_the_agents_spaces_are_those_of_the_environment(env: GymEnv) -> None:
    interface = Interface.of(env)
    again = Interface.from_json(json.loads(json.dumps(interface.to_json(), allow_nan=False)))
    assert again == interface
    assert again.spaces() == env.spaces
    assert list(again.spaces().observation) == list(env.spaces.observation)
