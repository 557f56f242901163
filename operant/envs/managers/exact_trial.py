"""Tries in a process of its own whether environments can be resumed bit for bit."""

from __future__ import annotations

from multiprocessing.connection import Connection
from typing import Any

from operant.core.errors import EnvironmentFault
from operant.envs.managers.exactness import resumes_exactly
from operant.envs.managers.step_buffers import EnvFn
from operant.processes.process import WorkerProcess
from operant.processes.worker import Commands, Pipes, run_service

PRELOAD = ("operant.envs.providers.gymnasium",)


class ExactTrial:
    """A service whose description is the result."""

    def __init__(self, make: EnvFn) -> None:
        self.exact = resumes_exactly(make)

    def describe(self) -> bool:
        """Whether the environment continued like the original."""
        return self.exact

    def attach(self, message: Any, memory: int, connection: Connection) -> Commands:
        """Nothing is asked of it."""
        return {}

    def close(self) -> None:
        """Both environments were closed before."""


def serve(pipes: Pipes, data: bytes) -> None:
    """The main function of the process; `data` is a pickled function that makes an environment."""
    run_service(ExactTrial, pipes, data)


def resumes_exactly_elsewhere(make: EnvFn, name: str) -> bool:
    """As `resumes_exactly`, in a process that the environment may crash: then it is not exact."""
    process = WorkerProcess(serve, make, (0, 1), name, PRELOAD)
    try:
        return bool(process.wait_ready())
    except EnvironmentFault:
        return False
    finally:
        process.kill()
