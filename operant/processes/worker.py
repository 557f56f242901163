"""What runs inside a process of environments: wait for one byte, do what it says, answer one byte.

Nothing here imports torch: a worker starts in milliseconds and stays small.
"""

from __future__ import annotations

import contextlib
import faulthandler
import fcntl
import math
import mmap
import multiprocessing
import os
import pickle
import select
import signal
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle
from typing import TYPE_CHECKING, Any

import numpy as np

from operant.core.spaces import Spaces
from operant.envs.managers.slots import Board, Slots, board

if TYPE_CHECKING:  # this module imports torch
    from operant.core.tree import Array

STEP, RESET, SAVE, LOAD, CLOSE = b"s", b"r", b"g", b"p", b"c"  # asked
DONE, ERROR = b"d", b"e"  # answered
ALIGN = 64  # bytes: a cache line
Commands = dict[bytes, Callable[[], Any]]


class Carver:
    """Cuts arrays out of a buffer, one after the other; without a buffer it only counts."""

    def __init__(self, buffer: Any = None) -> None:
        self.buffer, self.used = buffer, 0

    def __call__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        count, start = math.prod(shape), self.used
        self.used += -(-count * dtype.itemsize // ALIGN) * ALIGN
        if self.buffer is None:
            return np.empty(0, dtype)
        return np.frombuffer(self.buffer, dtype, count, start).reshape(shape)


def shared_board(spaces: Spaces, num_envs: int, memory: int) -> Board:
    """The board in the shared memory behind a file descriptor."""
    return board(spaces, num_envs, Carver(mmap.mmap(memory, os.fstat(memory).st_size)))


def serve(talk: Connection, trace: Connection, payload: bytes) -> None:
    """Build the environments, take part of the board, and obey until told to close."""
    prepare(trace)
    try:
        envs = [make() for make in pickle.loads(payload)]
        talk.send(
            (envs[0].spaces, envs[0].frames_per_step, type(envs[0]), [e.spaces for e in envs])
        )
        num_envs, start, stop = talk.recv()
        memory = recv_handle(talk)
        slots = Slots(envs, shared_board(envs[0].spaces, num_envs, memory).rows(start, stop))
        os.close(memory)
    except EOFError:  # the parent hung up
        return None
    except BaseException as error:
        return talk.send(told(error))

    def load() -> None:
        for env, saved in zip(slots.envs, talk.recv(), strict=True):
            env.restore(saved)

    commands: Commands = {
        STEP: slots.step,
        RESET: slots.reset,
        SAVE: lambda: [env.snapshot() for env in slots.envs],
        LOAD: load,
    }
    return obey(commands, talk, slots.close)


def obey(commands: Commands, talk: Connection, close: Callable[[], object]) -> None:
    """Do what each byte asks; one byte says that it is done, and what it gave, if anything."""
    fd = talk.fileno()
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the parent hung up
        while (asked := os.read(fd, 1)) not in (CLOSE, b""):
            try:
                result = commands[asked]()
            except BaseException as error:
                tell_error(talk, error)
                continue
            os.write(fd, DONE)
            if result is not None:
                talk.send(result)
    close()


def tell_error(talk: Connection, error: BaseException) -> None:
    """Answer that what was asked could not be done."""
    os.write(talk.fileno(), ERROR)
    talk.send(told(error))


def told(error: BaseException) -> tuple[str, str, str]:
    """An error as its kind, its sentence and its traceback."""
    return type(error).__name__, str(error), "".join(traceback.format_exception(error))


def prepare(trace: Connection) -> None:
    """Leave signals to the parent, tell it where this process crashed, and die with it."""
    # The terminal sends Ctrl-C, and a scheduler its SIGTERM, to everyone; the parent decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    faulthandler.enable(trace.fileno())
    faulthandler.register(signal.SIGUSR1, trace.fileno())
    _die_with_parent()


def _die_with_parent() -> None:
    """Have the kernel kill this process when its parent is gone, even in the middle of a step.

    PR_SET_PDEATHSIG would watch the fork server, which outlives the parent as long as a worker
    does; the pipe that multiprocessing keeps open to the real parent does not.
    """
    parent = multiprocessing.parent_process()
    if parent is None or not hasattr(fcntl, "F_SETSIG"):
        return
    sentinel = parent.sentinel
    fcntl.fcntl(sentinel, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(sentinel, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(sentinel, fcntl.F_SETFL, fcntl.fcntl(sentinel, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([sentinel], [], [], 0)[0]:  # it went before we watched
        os.kill(os.getpid(), signal.SIGKILL)
