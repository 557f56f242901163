"""What runs inside a worker process: read one command byte, run it, reply with one byte.

Nothing here imports torch: a worker that does without it starts in milliseconds and stays small.
"""

from __future__ import annotations

import contextlib
import faulthandler
import fcntl
import os
import pickle
import select
import signal
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle
from typing import Any, NamedTuple, Protocol

CLOSE = b"c"  # the one command that every worker knows
DONE, ERROR = b"d", b"e"  # replies
Commands = dict[bytes, Callable[[], Any]]  # a result that is not None is sent after the reply


class WorkerError(NamedTuple):
    """An exception, as one process reports it to another."""

    kind: str
    message: str
    traceback: str

    @classmethod
    def of(cls, error: BaseException) -> WorkerError:
        """The report of an exception."""
        trace = "".join(traceback.format_exception(error))
        return cls(type(error).__name__, str(error), trace)


class Service(Protocol):
    """What a worker does for its parent, made from what the parent sent."""

    def describe(self) -> Any: ...  # what the parent must know to allocate shared memory
    def attach(self, message: Any, memory: int, connection: Connection) -> Commands: ...
    def close(self) -> None: ...


class Pipes(NamedTuple):
    """What connects a worker to its parent."""

    connection: Connection  # commands and replies
    traces: Connection  # tracebacks of crashes
    parent: Connection  # nothing is ever written to it: it is closed when the parent is gone


def run_service(make_service: Callable[[Any], Service], pipes: Pipes, data: bytes) -> None:
    """Make a service, describe it to the parent, attach it to shared memory, and run commands."""
    set_up_process(pipes)
    # A parent that gave up, such as for the error of another worker, has closed its end.
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        _serve(make_service, pipes.connection, data)


def _serve(make_service: Callable[[Any], Service], connection: Connection, data: bytes) -> None:
    try:
        service = make_service(pickle.loads(data))
        connection.send(service.describe())
    except BaseException as error:
        return connection.send(WorkerError.of(error))
    message = connection.recv()
    memory = recv_handle(connection)
    try:
        commands = service.attach(message, memory, connection)
        os.close(memory)
    except BaseException as error:
        return send_error(connection, error)
    return run_commands(commands, connection, service.close)


def run_commands(commands: Commands, connection: Connection, close: Callable[[], object]) -> None:
    """Run the command of each byte that arrives, and reply, until one is CLOSE."""
    fd = connection.fileno()
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the parent is gone
        while (command := os.read(fd, 1)) not in (CLOSE, b""):
            try:
                result = commands[command]()
            except BaseException as error:
                send_error(connection, error)
                continue
            os.write(fd, DONE)
            if result is not None:
                connection.send(result)
    close()


def send_error(connection: Connection, error: BaseException) -> None:
    """Reply that a command failed, and how."""
    os.write(connection.fileno(), ERROR)
    connection.send(WorkerError.of(error))


def set_up_process(pipes: Pipes) -> None:
    """Ignore the signals that are the parent's, send tracebacks of crashes, die with the parent."""
    # The terminal sends Ctrl-C and, when it is closed, SIGHUP to everyone, and a scheduler its
    # SIGTERM; the parent decides.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    faulthandler.enable(pipes.traces.fileno())
    faulthandler.register(signal.SIGUSR1, pipes.traces.fileno())
    _die_with(pipes.parent)


def _die_with(parent: Connection) -> None:
    """Have the kernel kill this process when its parent is gone, even in the middle of a step.

    PR_SET_PDEATHSIG would watch the fork server, which outlives the parent as long as a worker
    does. Nor can it be multiprocessing's own pipe to the parent: the data that started this process
    came through it, and the kernel may signal that only after the data was read.
    """
    if not hasattr(fcntl, "F_SETSIG"):
        return
    fd = parent.fileno()
    fcntl.fcntl(fd, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([fd], [], [], 0)[0]:  # it died before it was watched
        os.kill(os.getpid(), signal.SIGKILL)
