"""Environments in this process, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from operant.core.experience import Arrays, EnvStep
from operant.core.tree import Array
from operant.envs.environment import Environment
from operant.envs.lives import LIFE_LOST
from operant.envs.managers.exactness import Resumable, resumes_exactly
from operant.envs.managers.step_buffers import BufferedEnvs, EnvFn, StepBuffers
from operant.envs.preprocessing.action import ActionCheck


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
        self.env_cls, self.action_preprocessor = type(envs[0]), envs[0].action_preprocessor
        self._check = ActionCheck(self.spaces.action)
        self.buffers = StepBuffers.allocate(self.spaces, self.num_envs)
        self.buffered = BufferedEnvs(envs, self.buffers)
        self.set_active(np.ones(self.num_envs, bool))

    @property
    def envs(self) -> list[Environment]:
        """The environments themselves, for instance to render one."""
        return self.buffered.envs

    def reset(self, seed: int | None = None) -> Arrays:
        """Begin an episode everywhere; environment i is seeded with `seed + first + i`."""
        seed = self._reset_seed(seed)
        self.buffers.seed[:] = -1 if seed is None else seed + self.first + np.arange(self.num_envs)
        self.buffered.reset()
        return kept(self.buffers.observation)

    def step(self, actions: Arrays) -> EnvStep:
        """One action in every active environment."""
        self._check_started()
        if self.episodes_lost:
            return restart_step(self.buffers.observation, self.reset, self.buffers.agents)
        self._check(actions, (self.num_envs,))
        for name, x in actions.items():
            self.buffers.action[name][:] = x
        self.steps += 1
        self.buffered.step()
        return env_step(self.buffers, self.valid)

    def set_active(self, active: Array) -> None:
        """Let only these environments step from now on; rows of the others are not valid."""
        self.buffers.active[:] = active
        self.valid = self.buffers.active.copy()

    def close(self) -> None:
        """Close every environment; a second call does nothing."""
        if not self.closed:
            self.closed = True
            self.buffered.close()

    def _try_resuming(self) -> bool:
        return resumes_exactly(self.env_fns[0])

    def _capture(self) -> dict[str, Any]:
        return {"envs": self.buffered.snapshots()}

    def _restore(self, state: dict[str, Any]) -> None:
        self.buffered.restore(state["envs"])


def env_step(buffers: StepBuffers, valid: Array) -> EnvStep:
    """What the buffers hold, as a step."""
    b = buffers
    ended = b.terminated | b.truncated
    infos: dict[str, Any] = {}
    reported = b.success >= 0
    if reported.any():
        infos = {"is_success": b.success == 1, "_is_success": reported}
    if b.life_lost.any():
        infos[LIFE_LOST] = b.life_lost.copy()
    final = b.final_observation if ended.any() else None
    for name, x in (final or {}).items():
        # Elsewhere, final observations of earlier episodes would differ after resuming.
        x[~ended] = b.observation[name][~ended]
    told = (b.reward, b.terminated, b.truncated, valid, final, infos)
    return EnvStep(kept(b.observation), *told, b.agents or None)


def kept(observation: Arrays) -> Arrays:
    """Copies: a loop of one's own still has to store an observation after the step that follows."""
    return {name: x.copy() for name, x in observation.items()}


def restart_step(
    observation: Arrays, reset: Callable[[], Arrays], agents: Arrays | None = None
) -> EnvStep:
    """A step that truncates episodes which could not be resumed, and begins new ones."""
    final = kept(observation)
    count = len(next(iter(final.values())))
    yes, no = np.ones(count, bool), np.zeros(count, bool)
    each = {name: np.zeros_like(x) for name, x in agents.items()} if agents else None
    return EnvStep(reset(), np.zeros(count, np.float32), no, yes, no.copy(), final, {}, each)
