"""What a worker process of environments does; like all that it imports, free of torch."""

from __future__ import annotations

from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import NamedTuple

from operant.core.spaces import Space, Spaces
from operant.envs.managers.step_buffers import BufferedEnvs, EnvFn, StepBuffers
from operant.processes.shared_memory import ArrayAllocator
from operant.processes.worker import Commands, Pipes, run_service

STEP, RESET, SAVE, LOAD = b"s", b"r", b"g", b"p"
PRELOAD = ("operant.envs.providers.gymnasium",)


class EnvsDescription(NamedTuple):
    """What the manager must know of a worker's environments."""

    spaces: list[Spaces]  # of each
    frames_per_step: int
    env_cls: type
    action_space: Space  # the environment's own


class EnvService:
    """Steps its environments when it is asked to, in rows of shared buffers."""

    def __init__(self, env_fns: Sequence[EnvFn]) -> None:
        self.envs = [make() for make in env_fns]

    def describe(self) -> EnvsDescription:
        """The spaces and the class of the environments."""
        first = self.envs[0]
        about = (first.frames_per_step, type(first), first.action_space)
        return EnvsDescription([e.spaces for e in self.envs], *about)

    def attach(
        self, message: tuple[int, int, int], memory: int, connection: Connection
    ) -> Commands:
        """Take rows `start` to `stop` of the buffers of all environments."""
        num_envs, start, stop = message
        allocator = ArrayAllocator.over(memory)
        buffers = StepBuffers.allocate(self.envs[0].spaces, num_envs, allocator)
        buffered = BufferedEnvs(self.envs, buffers.rows(start, stop))
        return {
            STEP: buffered.step,
            RESET: buffered.reset,
            SAVE: buffered.snapshots,
            LOAD: lambda: buffered.restore(connection.recv()),
        }

    def close(self) -> None:
        """Close every environment."""
        for env in self.envs:
            env.close()


def serve(pipes: Pipes, data: bytes) -> None:
    """The main function of the process; `data` is a pickled list of what makes environments."""
    run_service(EnvService, pipes, data)
