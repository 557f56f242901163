"""Environments in worker processes: few workers with several environments each.

Observations, actions and rewards lie in anonymous shared memory that goes away with the last
process; one byte through a socket starts a step and one answers it, and its end is the notice
of a death. Nothing is pickled in a step.
"""

from __future__ import annotations

import os
import select
import time
import warnings
from collections.abc import Sequence
from itertools import pairwise
from multiprocessing.util import Finalize
from typing import Any

import numpy as np

from operant.core.errors import UsageError
from operant.core.experience import Arrays, EnvStep
from operant.envs import worker
from operant.envs.exactness import Resumable, derived, probe
from operant.envs.preprocess import ActionCheck
from operant.envs.process import WorkerProcess, anonymous_memory, shut_down
from operant.envs.simple import answer, lost_step
from operant.envs.slots import EnvFn, board

Lost = tuple[WorkerProcess, str]  # and what became of it
WINDOW = 600.0  # seconds within which restarts of a worker are counted
PAUSE = 0.05  # seconds before the first restart; each further one in the window waits twice as long


class SubProcEnvManager(Resumable):
    """B environments as one, over processes; each is reset at once when its episode ends.

    A worker that dies or hangs is replaced: its rows are truncated and not valid in that step.
    An environment that raises stops the run, with its traceback as a note of the error.
    """

    obs_preprocessor_gpu = None

    def __init__(
        self,
        env_fns: Sequence[EnvFn],
        seed: int = 0,
        workers: int = 2,
        step_timeout: float = 60.0,
        max_restarts: int = 3,
    ) -> None:
        super().__init__(seed)
        self.env_fns, self.num_envs = list(env_fns), len(env_fns)
        self.step_timeout, self.max_restarts = step_timeout, max_restarts
        bounds = np.linspace(0, self.num_envs, min(workers, self.num_envs) + 1).astype(int)
        self.workers: list[WorkerProcess] = []
        self.shut_down = Finalize(self, shut_down, (self.workers,), exitpriority=10)
        self.restarts = 0  # workers replaced so far
        try:
            for start, stop in pairwise(bounds):
                self.workers.append(WorkerProcess(self.env_fns[start:stop], int(start)))
            self._share([one.meet() for one in self.workers])
        except BaseException:
            self.close()
            raise

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
            one.attach(self.num_envs, self._memory)
        self._check = ActionCheck(self.spaces.action)
        self._all = np.ones(self.num_envs, bool)

    def reset(self, seed: int | None = None) -> Arrays:
        """Begin an episode everywhere; environment i is seeded with `seed + i`."""
        seed = self._seed_for(seed)
        self.board.seed[:] = -1 if seed is None else seed + np.arange(self.num_envs)
        for one, why in self._exchange(worker.RESET, self.workers):
            self._replace(one, why)
        return self.board.observation

    def step(self, actions: Arrays) -> EnvStep:
        """One action in every environment."""
        self._check_started()
        if self.lost:
            return lost_step(self.board.observation, self.reset)
        self._check(actions, (self.num_envs,))
        for name, x in self.board.action.items():
            x[:] = actions[name]
        self.steps += 1
        lost = self._exchange(worker.STEP, self.workers)
        return self._cut(lost) if lost else answer(self.board, self._all)

    def close(self) -> None:
        """End every process within a few seconds; a second call does nothing."""
        if not self.closed:
            self.closed = True
            self.shut_down()
            if hasattr(self, "board"):
                os.close(self._memory)
                del self.board  # the memory goes with the last array that someone keeps

    def _probe(self) -> bool:
        return probe(self.env_fns[0])

    def _capture(self) -> dict[str, Any]:
        self._insist(self._exchange(worker.SAVE, self.workers))
        return {"envs": [env for one in self.workers for env in one.talk.recv()]}

    def _restore(self, state: dict[str, Any]) -> None:
        for one in self.workers:
            if not one.ask(worker.LOAD):
                raise one.fault("died", one.last_words())
            one.talk.send(state["envs"][one.start : one.stop])
        self._insist(self._answers(self.workers))

    def _exchange(self, command: bytes, workers: Sequence[WorkerProcess]) -> list[Lost]:
        """Have workers do something, and say which of them could not."""
        asked = [one for one in workers if one.ask(command)]
        return [(one, "died") for one in workers if one not in asked] + self._answers(asked)

    def _answers(self, workers: Sequence[WorkerProcess]) -> list[Lost]:
        """Wait for an answer of each worker; an error of theirs is raised when all have spoken."""
        lost: list[Lost] = []
        errors: list[Exception] = []
        waiting = {one.fd: one for one in workers}
        poll = select.poll()
        for fd in waiting:
            poll.register(fd, select.POLLIN)
        deadline = time.monotonic() + self.step_timeout
        while waiting and (left := deadline - time.monotonic()) > 0:
            for fd, _ in poll.poll(left * 1e3):
                poll.unregister(fd)
                one = waiting.pop(fd)
                answered = one.answered()
                if answered == worker.ERROR:
                    errors.append(one.told_error())
                elif not answered:
                    lost.append((one, "died"))
        if errors:
            raise errors[0]
        return lost + [(one, f"hung for {self.step_timeout:g} s") for one in waiting.values()]

    def _insist(self, lost: list[Lost]) -> None:
        for one, why in lost:
            raise one.fault(why, one.last_words())

    def _cut(self, lost: list[Lost]) -> EnvStep:
        """A step in which the rows of lost workers are truncated and count for nothing."""
        b, valid = self.board, self._all.copy()
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
        """Begin new episodes in a new process, or give up when it was replaced too often."""
        words = one.last_words()
        one.let_go()
        now = time.monotonic()
        one.restarts = [at for at in one.restarts if now - at < WINDOW]
        if len(one.restarts) >= self.max_restarts:
            raise one.fault(
                f"{why}, after max_restarts = {self.max_restarts} restarts within {WINDOW:g} s",
                words,
            )
        warnings.warn(f"{one.fault(why, words)}; restarted, its episodes are lost", stacklevel=4)
        time.sleep(PAUSE * 2 ** len(one.restarts))
        one.restarts.append(now)
        self.restarts += 1
        one.launch()
        one.meet()
        one.attach(self.num_envs, self._memory)
        seed = derived(self.seed, self.steps, self.restarts)
        self.board.seed[one.start : one.stop] = seed + np.arange(one.start, one.stop)
        for again, reason in self._exchange(worker.RESET, [one]):
            self._replace(again, reason)
