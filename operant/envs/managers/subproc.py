"""Environments in worker processes: few workers with several environments each.

Observations, actions and rewards lie in anonymous shared memory that goes away with the last
process; one byte through a socket starts a step and one answers it, and its end is the notice
of a death. Nothing is pickled in a step.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from operant.core.errors import UsageError
from operant.core.experience import Arrays, EnvStep
from operant.core.seeds import derived
from operant.core.tree import Array
from operant.envs.managers.exactness import Resumable, probe
from operant.envs.managers.simple import answer, lost_step
from operant.envs.managers.slots import EnvFn, board
from operant.envs.preprocessing import ActionCheck
from operant.processes import worker
from operant.processes.pool import Crew, Lost
from operant.processes.process import WorkerProcess, anonymous_memory


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
        self.crew = Crew(self, step_timeout, max_restarts)
        self.workers = self.crew.workers
        bounds = np.linspace(0, self.num_envs, min(workers, self.num_envs) + 1).astype(int)
        try:
            for start, stop in pairwise(bounds.tolist()):
                part = self.env_fns[start:stop]
                self.workers.append(WorkerProcess(worker.serve, part, start, stop, first))
            self._share(self.crew.meet())
        except BaseException:
            self.close()
            raise

    @property
    def restarts(self) -> int:
        """Workers replaced so far."""
        return self.crew.restarts

    def _share(self, told: list[Any]) -> None:
        """Lay the board in shared memory and give every worker its rows."""
        self.spaces, self.frames_per_step, self.env_cls, _ = told[0]
        for i, spaces in enumerate(spaces for *_, each in told for spaces in each):
            if spaces != self.spaces:
                raise UsageError(f"environment {i} has {spaces}; expected {self.spaces} as in 0")
        carver = worker.Carver()
        board(self.spaces, self.num_envs, carver)
        self._memory = anonymous_memory(carver.used)
        self.board = worker.shared_board(self.spaces, self.num_envs, self._memory)
        for one in self.workers:
            one.attach((self.num_envs, one.start, one.stop), self._memory)
        self._check = ActionCheck(self.spaces.action)
        self.valid = np.ones(self.num_envs, bool)
        self.rest(self.valid)

    def reset(self, seed: int | None = None) -> Arrays:
        """Begin an episode everywhere; environment i is seeded with `seed + first + i`."""
        seed = self._seed_for(seed)
        self.board.seed[:] = -1 if seed is None else seed + self.first + np.arange(self.num_envs)
        for one, why in self.crew.ask(worker.RESET):
            self._replace(one, why)
        return self.board.observation

    def rest(self, active: Array) -> None:
        """Let only these environments step from now on; rows of the others are not valid."""
        self.board.active[:] = active
        self.valid = self.board.active.copy()

    def step(self, actions: Arrays) -> EnvStep:
        """One action in every environment."""
        self.send(actions)
        return self.receive()

    def send(self, actions: Arrays) -> None:
        """Have every environment take an action; `receive` must follow."""
        self._check_started()
        if self.lost:
            return
        self._check(actions, (self.num_envs,))
        for name, x in self.board.action.items():
            x[:] = actions[name]
        self.steps += 1
        self.crew.tell(worker.STEP)

    def receive(self) -> EnvStep:
        """What came of the actions sent."""
        if self.lost:
            return lost_step(self.board.observation, self.reset)
        lost = self.crew.answers()
        return self._cut(lost) if lost else answer(self.board, self.valid)

    def close(self) -> None:
        """End every process within a few seconds; a second call does nothing."""
        if not self.closed:
            self.closed = True
            self.crew.close()
            if hasattr(self, "board"):
                os.close(self._memory)
                del self.board  # the memory goes with the last array that someone keeps

    def _probe(self) -> bool:
        return probe(self.env_fns[0])

    def _capture(self) -> dict[str, Any]:
        self.crew.insist(self.crew.ask(worker.SAVE))
        return {"envs": [env for one in self.workers for env in one.talk.recv()]}

    def _restore(self, state: dict[str, Any]) -> None:
        for one in self.workers:
            if not one.ask(worker.LOAD):
                raise one.fault("died", one.last_words())
            one.talk.send(state["envs"][one.start : one.stop])
        self.crew.insist(self.crew.answers())

    def _cut(self, lost: list[Lost]) -> EnvStep:
        """A step in which the rows of lost workers are truncated and count for nothing."""
        b, valid = self.board, self.valid.copy()
        for one, why in lost:
            rows = slice(one.start, one.stop)
            for name, x in b.observation.items():
                b.final_observation[name][rows] = x[rows]
            self._replace(one, why)
            b.reward[rows], b.terminated[rows], b.truncated[rows] = 0, False, True
            b.success[rows], valid[rows] = -1, False
        step = answer(b, valid)
        return step._replace(infos=step.infos | {"env_restarts": self.restarts})

    def _replace(self, one: WorkerProcess, why: str) -> None:
        """Begin new episodes in a new process."""
        self.crew.replace(one, why)
        one.attach((self.num_envs, one.start, one.stop), self._memory)
        seed = derived(self.seed, self.steps, self.restarts) + self.first
        self.board.seed[one.start : one.stop] = seed + np.arange(one.start, one.stop)
        for again, reason in self.crew.ask(worker.RESET, [one]):
            self._replace(again, reason)
