"""Environments side by side over arrays `[B, ...]`, reset at once when an episode ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from operant.core.spaces import Space, Spaces
from operant.envs.environment import Environment

if TYPE_CHECKING:  # these modules import torch, which environment workers do without
    from operant.core.experience import Arrays
    from operant.core.tree import Array

EnvFn = Callable[[], Environment]
Allocate = Callable[[tuple[int, ...], "np.dtype[Any]"], "Array"]


class Board(NamedTuple):
    """What environments and those who step them tell each other, one row an environment."""

    action: Arrays
    observation: Arrays
    final_observation: Arrays
    reward: Array
    terminated: Array
    truncated: Array
    success: Array  # 1 or 0 where an episode that ended said so, else -1
    seed: Array  # for the next reset; -1: none
    active: Array  # whether it takes the next step, or rests

    def rows(self, start: int, stop: int) -> Board:
        """Some rows of every array, the same bytes."""
        cut: Any = (
            {k: v[start:stop] for k, v in x.items()} if isinstance(x, dict) else x[start:stop]
            for x in self
        )
        return Board(*cut)


def board(spaces: Spaces, num_envs: int, allocate: Allocate = np.zeros) -> Board:
    """A board for so many environments."""

    def arrays(of: dict[str, Space]) -> Arrays:
        return {k: allocate((num_envs, *(s.shape or ())), np.dtype(s.dtype)) for k, s in of.items()}

    def flags(dtype: str) -> Array:
        return allocate((num_envs,), np.dtype(dtype))

    return Board(
        arrays(spaces.action),
        arrays(spaces.observation),
        arrays(spaces.observation),
        flags("float32"),
        flags("bool"),
        flags("bool"),
        flags("int8"),
        flags("int64"),
        flags("bool"),
    )


class Slots:
    """Environments that read their actions from a board and write there what came of them."""

    def __init__(self, envs: Sequence[Environment], board: Board) -> None:
        self.envs, self.board = list(envs), board

    def reset(self) -> None:
        """Begin an episode in every environment, seeded as the board says."""
        for i, env in enumerate(self.envs):
            seed = int(self.board.seed[i])
            _put(self.board.observation, i, env.reset(None if seed < 0 else seed))

    def step(self) -> None:
        """One action in every environment that does not rest."""
        b = self.board
        active = b.active.tolist()
        for i, env in enumerate(self.envs):
            if not active[i]:
                b.reward[i], b.terminated[i], b.truncated[i], b.success[i] = 0, False, False, -1
                continue
            action = {name: x[i] for name, x in b.action.items()}
            seen, b.reward[i], terminated, truncated, info = env.step(action)
            b.terminated[i], b.truncated[i], b.success[i] = terminated, truncated, -1
            if terminated or truncated:
                b.success[i] = int(bool(info["is_success"])) if "is_success" in info else -1
                _put(b.final_observation, i, seen)
                seen = env.reset()
            _put(b.observation, i, seen)

    def close(self) -> None:
        """Close every environment."""
        for env in self.envs:
            env.close()


def _put(arrays: Arrays, row: int, values: Arrays) -> None:
    for name, x in arrays.items():
        x[row] = values[name]
