"""The parent's side of one worker process: start it, send commands, notice its death, end it."""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import pickle
import select
import signal
import socket
import struct
import sys
import time
import types
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import connection
from multiprocessing.reduction import send_handle
from typing import Any, NamedTuple, Self

from operant.core.errors import EnvironmentFault, TrainingFault, UsageError
from operant.processes import worker

FORKSERVER = multiprocessing.get_context("forkserver")
START_TIMEOUT = 300.0  # seconds to build what the process works with, such as environments
WATCH_SECONDS = 0.5  # between two looks at whether a process is there that does not reply
CLOSE_TIMEOUT = 5.0  # seconds to close it
REBUILT: dict[str, type[Exception]] = {"UsageError": UsageError, "TrainingFault": TrainingFault}
SERVER_EXIT = "operant.processes.server_exit"  # imported by the fork server
Serve = Callable[[worker.Pipes, bytes], None]


class ExitReport(NamedTuple):
    """How a process ended, if it did, and its traceback, if there is one."""

    ending: str
    traceback: str


class DiedWhileStarting(EnvironmentFault):
    """A process that ended before it had built what it works with."""

    def with_notes(self, other: BaseException) -> Self:
        """This error with the notes of another."""
        for note in getattr(other, "__notes__", ()):
            self.add_note(note)
        return self


class WorkerProcess:
    """A process that runs `serve`, and works on rows `start` to `stop` of a batch.

    `make` is pickled and sent to it. `name` is what error messages call its rows. `preload` are
    modules that the fork server imports once for all processes. `progress`, if there is one, gives
    a number that changes while the process is at work, however long that takes.
    """

    def __init__(
        self,
        serve: Serve,
        make: Any,
        rows: tuple[int, int],
        name: str,
        preload: Sequence[str] = (),
    ) -> None:
        self.serve, self.name, self.preload = serve, name, [serve.__module__, SERVER_EXIT, *preload]
        self.start, self.stop = rows
        self.data = self._pickled(make)
        self.restart_times: list[float] = []
        self.timeout = self.watch = math.inf  # set once it is ready
        self.progress: Callable[[], int] | None = None
        self.launch()

    def launch(self) -> None:
        """Start the process; `wait_ready` waits for it."""
        self.ended = False
        FORKSERVER.set_forkserver_preload(self.preload)
        self.connection, theirs = FORKSERVER.Pipe()
        self.traces, traces = FORKSERVER.Pipe(duplex=False)
        watched, self.alive = FORKSERVER.Pipe(duplex=False)  # open as long as this process lives
        pipes = worker.Pipes(theirs, traces, watched)
        self.process = FORKSERVER.Process(
            target=self.serve, args=(pipes, self.data), name=self.name, daemon=True
        )
        with _main_module(hidden=b"__main__" not in self.data):
            self.process.start()
        for end in pipes:  # so that the end of the process is the end of the file
            end.close()
        self.fd = self.connection.fileno()

    def _pickled(self, make: Any) -> bytes:
        try:
            return pickle.dumps(make)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise UsageError(
                f"{self.name} cannot be sent to a worker process ({error}); expected functions or "
                f"classes that a module defines, or functools.partial of such; "
                f"or run them without worker processes"
            ) from None

    def wait_ready(self) -> Any:
        """How the process describes what it has built, as soon as that is done."""
        ends: list[Any] = [self.connection, self.process.sentinel]
        ready = connection.wait(ends, START_TIMEOUT)
        if not ready:
            raise self.fault(f"hung for {START_TIMEOUT:g} s while starting", self.exit_report())
        try:
            if self.connection not in ready and not self.connection.poll():
                raise EOFError  # it ended, though children of its own may hold the connection
            description = self.connection.recv()
        except (EOFError, OSError):
            died = self.fault("died while starting", self.exit_report())
            raise DiedWhileStarting(*died.args).with_notes(died) from None
        if isinstance(description, worker.WorkerError):
            raise self.exception(description)
        return description

    def attach(self, message: Any, memory: int) -> None:
        """Send the shared memory, and a message that says how to use it."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # no reply will tell
            self.connection.send(message)
            send_handle(self.connection, memory, self.process.pid)

    def send(self, command: bytes) -> bool:
        """Send a command; false if the process is gone."""
        try:
            return os.write(self.fd, command) == 1
        except OSError:
            return False

    def set_timeout(self, seconds: float) -> None:
        """How long `read_reply` waits."""
        self.timeout = seconds
        self.watch = min(seconds, WATCH_SECONDS)
        whole, fraction = divmod(self.watch, 1)
        with socket.socket(fileno=os.dup(self.fd)) as line:
            limit = struct.pack("ll", int(whole), int(fraction * 1e6) or int(whole == 0))
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)

    def read_reply(self) -> bytes:
        """The reply to a command, empty if the process died; BlockingIOError after the timeout."""
        waited, before = 0.0, self.progress and self.progress()
        while True:
            try:
                return os.read(self.fd, 1)
            except BlockingIOError:
                # The end of the file may be late: children of an environment hold the other end.
                if self.has_ended() and not self.has_replied():
                    return b""
                now = self.progress and self.progress()
                waited = waited + self.watch if now == before else 0.0
                before = now
                if waited >= self.timeout:
                    raise
            except OSError:
                return b""

    def has_ended(self) -> bool:
        """Whether the process is gone."""
        return bool(connection.wait([self.process.sentinel], 0))

    def has_replied(self) -> bool:
        """Whether `read_reply` would return at once."""
        return bool(select.select([self.fd], [], [], 0)[0])

    def receive_error(self) -> Exception:
        """The error that follows the reply `ERROR`."""
        return self.exception(self.connection.recv())

    def exception(self, error: worker.WorkerError) -> Exception:
        """An error of the process as an exception, with its traceback as a note."""
        if error.kind in REBUILT:
            return REBUILT[error.kind](error.message)
        ours = error.kind == "EnvironmentFault"
        found = self.fault(error.message if ours else f"{error.kind}: {error.message}")
        found.add_note(error.traceback)
        return found

    def fault(self, what: str, report: ExitReport | None = None) -> EnvironmentFault:
        """An exception that names what this process works on."""
        found = EnvironmentFault(f"worker of {self.name}: {what}{report.ending if report else ''}")
        if report and report.traceback:
            found.add_note(report.traceback)
        return found

    def exit_report(self) -> ExitReport:
        """How the process ended, or where it is stuck."""
        self.process.join(0.2)
        if self.process.exitcode is None and self.process.pid is not None:
            os.kill(self.process.pid, signal.SIGUSR1)  # it answers with a traceback
            self.traces.poll(0.5)
        trace = b""
        while self.traces.poll(0.05) and (more := os.read(self.traces.fileno(), 1 << 16)):
            trace += more
        return ExitReport(_ending(self.process.exitcode), trace.decode(errors="replace").strip())

    def request_close(self) -> None:
        """Ask the process to end; it also ends when the connection is closed."""
        self.send(worker.CLOSE)
        self.connection.close()

    def kill(self) -> None:
        """Kill what is left of the process and free what it held."""
        self.ended = True
        self.process.kill()
        self.process.join(CLOSE_TIMEOUT)
        for end in (self.connection, self.traces, self.alive):
            end.close()
        with contextlib.suppress(ValueError):  # not even SIGKILL ends a process that the disk holds
            self.process.close()


def row_range(start: int, stop: int) -> str:
    """Rows as error messages name them, such as `0-3`."""
    return f"{start}" if stop - start == 1 else f"{start}-{stop - 1}"


def shut_down(workers: Sequence[WorkerProcess]) -> None:
    """Ask every process to close, wait a little for all of them, and kill those that remain."""
    running = [one for one in workers if not one.ended]
    for one in running:
        one.request_close()
    waiting: list[Any] = [one.process.sentinel for one in running]
    deadline = time.monotonic() + CLOSE_TIMEOUT
    while waiting and (left := deadline - time.monotonic()) > 0:
        done = connection.wait(waiting, left)
        waiting = [sentinel for sentinel in waiting if sentinel not in done]
    for one in running:
        one.kill()


def _ending(code: int | None) -> str:
    if code is None:
        return ""
    if code >= 0:
        return f" (exit code {code})"
    hint = ", perhaps out of memory" if -code == signal.SIGKILL else ""
    return f" (killed by {signal.Signals(-code).name}{hint})"


@contextlib.contextmanager
def _main_module(hidden: bool) -> Iterator[None]:
    """Spare the worker the program's main module, which it would import, and torch with it."""
    main = sys.modules["__main__"]
    if hidden:
        sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
