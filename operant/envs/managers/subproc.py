"""Environments in worker processes: a few workers with several environments each.

Observations, actions and rewards lie in anonymous shared memory that goes away with the last
process. One byte through a socket starts a step and one byte ends it; when the socket closes, the
worker has died. Nothing is pickled in a step.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from operant.core.errors import UsageError
from operant.core.experience import Arrays, EnvStep
from operant.core.seeds import derived
from operant.core.tree import Array
from operant.envs.managers import env_worker
from operant.envs.managers.env_worker import EnvsDescription
from operant.envs.managers.exact_trial import resumes_exactly_elsewhere
from operant.envs.managers.exactness import Resumable, WorkerGone
from operant.envs.managers.simple import env_step, kept, restart_step
from operant.envs.managers.step_buffers import EnvFn, StepBuffers
from operant.envs.preprocessing.action import ActionCheck, ActionPreprocessor
from operant.processes.pool import LostWorker, WorkerPool
from operant.processes.process import WorkerProcess, row_range
from operant.processes.shared_memory import ArrayAllocator, anonymous_memory, size_of


class SubProcEnvManager(Resumable):
    """B environments as one, over processes; each is reset at once when its episode ends.

    A worker that dies or hangs is replaced: its rows are truncated and not valid in that step.
    An environment that raises stops the run, with its traceback as a note of the error.
    `first` is the place of the first environment in a larger batch.
    """

    obs_preprocessor_gpu = None

    def __init__(
        self,
        env_fns: Sequence[EnvFn],
        seed: int = 0,
        workers: int = 2,
        step_timeout: float = 60.0,
        max_restarts: int = 3,
        first: int = 0,
    ) -> None:
        super().__init__(seed)
        self.env_fns, self.num_envs, self.first = list(env_fns), len(env_fns), first
        self.pool = WorkerPool(self, step_timeout, max_restarts)
        self.workers = self.pool.workers
        self._memory = -1  # file descriptor of the shared memory, once there is one
        bounds = np.linspace(0, self.num_envs, min(workers, self.num_envs) + 1).astype(int)
        try:
            for bound in pairwise(bounds.tolist()):
                self.workers.append(self._worker(*bound))
            self._share(self.pool.wait_ready())
        except BaseException:
            self.close()
            raise

    def _worker(self, start: int, stop: int) -> WorkerProcess:
        name = f"environments {row_range(self.first + start, self.first + stop)}"
        env_fns = self.env_fns[start:stop]
        return WorkerProcess(env_worker.serve, env_fns, (start, stop), name, env_worker.PRELOAD)

    @property
    def restarts(self) -> int:
        """Workers replaced so far."""
        return self.pool.restarts

    def _share(self, descriptions: list[EnvsDescription]) -> None:
        """Allocate the buffers in shared memory and give every worker its rows."""
        (self.spaces, *_), self.frames_per_step, self.env_cls, action_space = descriptions[0]
        self.action_preprocessor = ActionPreprocessor(action_space)
        for i, spaces in enumerate(spaces for each in descriptions for spaces in each.spaces):
            if spaces != self.spaces:
                raise UsageError(
                    f"environment {i} has {spaces}; expected {self.spaces} as in environment 0"
                )
        allocate_buffers = partial(StepBuffers.allocate, self.spaces, self.num_envs)
        self._memory = anonymous_memory(size_of(allocate_buffers))
        self.buffers = allocate_buffers(ArrayAllocator.over(self._memory))
        for one in self.workers:
            one.attach((self.num_envs, one.start, one.stop), self._memory)
        self._check = ActionCheck(self.spaces.action)
        self.set_active(np.ones(self.num_envs, bool))

    def reset(self, seed: int | None = None) -> Arrays:
        """Begin an episode everywhere; environment i is seeded with `seed + first + i`."""
        seed = self._reset_seed(seed)
        self.buffers.seed[:] = -1 if seed is None else seed + self.first + np.arange(self.num_envs)
        for one, reason in self.pool.run(env_worker.RESET):
            self._replace(one, reason)
        return kept(self.buffers.observation)

    def set_active(self, active: Array) -> None:
        """Let only these environments step from now on; rows of the others are not valid."""
        self.buffers.active[:] = active
        self.valid = self.buffers.active.copy()

    def step(self, actions: Arrays) -> EnvStep:
        """One action in every active environment."""
        self.send(actions)
        return self.receive()

    def send(self, actions: Arrays) -> None:
        """Start a step; `receive` must follow."""
        self._check_started()
        if self.episodes_lost:
            return
        self._check(actions, (self.num_envs,))
        for name, x in self.buffers.action.items():
            x[:] = actions[name]
        self.steps += 1
        self.pool.send(env_worker.STEP)

    def receive(self) -> EnvStep:
        """Wait for the end of the step."""
        if self.episodes_lost:
            return restart_step(self.buffers.observation, self.reset, self.buffers.agents)
        lost = self.pool.wait()
        return self._truncated_step(lost) if lost else env_step(self.buffers, self.valid)

    def close(self) -> None:
        """End every process within a few seconds; a second call does nothing."""
        if not self.closed:
            self.closed = True
            self.pool.close()
            if self._memory >= 0:
                os.close(self._memory)
                del self.buffers  # the memory is freed with the last array that someone keeps

    def _try_resuming(self) -> bool:
        return resumes_exactly_elsewhere(self.env_fns[0], f"environment {self.first}, on trial")

    def _capture(self) -> dict[str, Any]:
        lost = self.pool.run(env_worker.SAVE)
        parts = self.pool.results(lost)  # all, or the next reply of a worker would be read wrongly
        for one, reason in lost:
            raise WorkerGone(str(one.fault(f"{reason} between two steps", one.exit_report())))
        return {"envs": [env for part in parts for env in part]}

    def _restore(self, state: dict[str, Any]) -> None:
        for one in self.workers:
            if not one.send(env_worker.LOAD):
                raise one.fault("died", one.exit_report())
            one.connection.send(state["envs"][one.start : one.stop])
        self.pool.raise_lost(self.pool.wait())

    def _truncated_step(self, lost: list[LostWorker]) -> EnvStep:
        """A step in which the rows of lost workers are truncated and not valid."""
        b, valid = self.buffers, self.valid.copy()
        for one, reason in lost:
            rows = slice(one.start, one.stop)
            for name, x in b.observation.items():
                b.final_observation[name][rows] = x[rows]
            self._replace(one, reason)
            b.reward[rows], b.terminated[rows], b.truncated[rows] = 0, False, True
            b.success[rows], b.life_lost[rows], valid[rows] = -1, False, False
            for x in b.agents.values():
                x[rows] = 0
        step = env_step(b, valid)
        return step._replace(infos=step.infos | {"env_restarts": self.restarts})

    def _replace(self, one: WorkerProcess, reason: str) -> None:
        """Begin new episodes in a new process."""
        self.pool.replace(one, reason)
        one.attach((self.num_envs, one.start, one.stop), self._memory)
        seed = derived(self.seed, self.steps, self.restarts) + self.first
        self.buffers.seed[one.start : one.stop] = seed + np.arange(one.start, one.stop)
        for again, why in self.pool.run(env_worker.RESET, [one]):
            self._replace(again, why)
