"""Environments in this process, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from operant.core.experience import Arrays, EnvStep
from operant.core.tree import Array
from operant.envs.environment import Environment
from operant.envs.managers.exactness import Resumable, probe
from operant.envs.managers.slots import Board, EnvFn, Slots, board
from operant.envs.preprocessing import ActionCheck


class SimpleEnvManager(Resumable):
    """B environments as one, in this process; each is reset at once when its episode ends.

    `first` is the place of the first environment in a larger batch.
    """

    obs_preprocessor_gpu = None

    def __init__(self, env_fns: Sequence[EnvFn], seed: int = 0, first: int = 0) -> None:
        super().__init__(seed)
        self.env_fns, self.first = list(env_fns), first
        envs = [make() for make in env_fns]
        self.num_envs = len(envs)
        self.spaces, self.frames_per_step = envs[0].spaces, envs[0].frames_per_step
        self.env_cls = type(envs[0])
        self._check = ActionCheck(self.spaces.action)
        self.board = board(self.spaces, self.num_envs)
        self.slots = Slots(envs, self.board)
        self.valid = np.ones(self.num_envs, bool)
        self.rest(self.valid)

    @property
    def envs(self) -> list[Environment]:
        """The environments themselves, for instance to render one."""
        return self.slots.envs

    def reset(self, seed: int | None = None) -> Arrays:
        """Begin an episode everywhere; environment i is seeded with `seed + first + i`."""
        seed = self._seed_for(seed)
        self.board.seed[:] = -1 if seed is None else seed + self.first + np.arange(self.num_envs)
        self.slots.reset()
        return self.board.observation

    def step(self, actions: Arrays) -> EnvStep:
        """One action in every environment."""
        self._check_started()
        if self.lost:
            return lost_step(self.board.observation, self.reset)
        self._check(actions, (self.num_envs,))
        for name, x in actions.items():
            self.board.action[name][:] = x
        self.steps += 1
        self.slots.step()
        return answer(self.board, self.valid)

    def rest(self, active: Array) -> None:
        """Let only these environments step from now on; rows of the others are not valid."""
        self.board.active[:] = active
        self.valid = self.board.active.copy()

    def close(self) -> None:
        """Close every environment; a second call does nothing."""
        if not self.closed:
            self.closed = True
            self.slots.close()

    def _probe(self) -> bool:
        return probe(self.env_fns[0])

    def _capture(self) -> dict[str, Any]:
        return {"envs": [env.snapshot() for env in self.envs]}

    def _restore(self, state: dict[str, Any]) -> None:
        for env, saved in zip(self.envs, state["envs"], strict=True):
            env.restore(saved)


def answer(board: Board, valid: Array) -> EnvStep:
    """The board as a step."""
    ended = board.terminated | board.truncated
    infos: dict[str, Any] = {}
    told = board.success >= 0
    if told.any():
        infos = {"is_success": board.success == 1, "_is_success": told}
    final = board.final_observation if ended.any() else None
    for name, x in (final or {}).items():
        # Rows without an end must not show what was there long ago: a resumed run has not seen it.
        x[~ended] = board.observation[name][~ended]
    return EnvStep(
        board.observation, board.reward, board.terminated, board.truncated, valid, final, infos
    )


def lost_step(observation: Arrays, reset: Any) -> EnvStep:
    """A step that only begins new episodes where the old ones could not be taken up again."""
    final = {name: x.copy() for name, x in observation.items()}
    count = len(next(iter(final.values())))
    yes, no = np.ones(count, bool), np.zeros(count, bool)
    return EnvStep(reset(), np.zeros(count, np.float32), no, yes, no.copy(), final, {})
