"""The parent's side of one worker process: start it, hear that it died, let it go."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import select
import signal
import socket
import struct
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import connection
from multiprocessing.reduction import send_handle
from typing import Any

from operant.core.errors import EnvironmentFault, TrainingFault, UsageError
from operant.processes import worker

FORKSERVER = multiprocessing.get_context("forkserver")
START_LIMIT = 300.0  # seconds to build the environments
CLOSE_LIMIT = 5.0  # seconds to close them
Words = tuple[str, str]  # how a process ended, and its traceback
PRELOAD = ["operant.processes.worker", "operant.envs.providers.gymnasium"]
SPOKEN: dict[str, type[Exception]] = {"UsageError": UsageError, "TrainingFault": TrainingFault}
Serve = Callable[[connection.Connection, connection.Connection, bytes], None]


class WorkerProcess:
    """A process that serves rows `start` to `stop` of a batch, which messages count from `first`.

    `make` is what it makes its environments from. `progress`, if there is one, gives a number
    that changes while it is at work, however long that takes.
    """

    def __init__(self, serve: Serve, make: Any, start: int, stop: int, first: int = 0) -> None:
        self.serve, self.start, self.stop = serve, start, stop
        few = stop - start == 1
        self.which = f"{first + start}" if few else f"{first + start}-{first + stop - 1}"
        self.payload = _pickled(make)
        self.restarts: list[float] = []  # when it was replaced
        self.progress: Callable[[], int] | None = None
        self.launch()

    def launch(self) -> None:
        """Start the process; `meet` waits for its environments."""
        self.gone = False
        FORKSERVER.set_forkserver_preload([self.serve.__module__, *PRELOAD])
        self.talk, theirs = FORKSERVER.Pipe()
        self.trace, traced = FORKSERVER.Pipe(duplex=False)
        arguments = (theirs, traced, self.payload)
        name = f"environments {self.which}"
        self.process = FORKSERVER.Process(target=self.serve, args=arguments, name=name, daemon=True)
        with _main_module(hidden=b"__main__" not in self.payload):
            self.process.start()
        theirs.close()  # so that the end of the process is the end of the file
        traced.close()
        self.fd = self.talk.fileno()

    def meet(self) -> Any:
        """What the process says of its environments, once it has built them."""
        if not self.talk.poll(START_LIMIT):
            raise self.fault(f"hung for {START_LIMIT:g} s in building them", self.last_words())
        try:
            told = self.talk.recv()
        except (EOFError, OSError):
            raise self.fault("died in building them", self.last_words()) from None
        if isinstance(told[0], str):
            raise self.error(told)
        return told

    def attach(self, message: Any, memory: int) -> None:
        """Hand over the shared memory, and what there is to know of it."""
        self.talk.send(message)
        send_handle(self.talk, memory, self.process.pid)

    def ask(self, command: bytes) -> bool:
        """Whether the process could still be told."""
        try:
            return os.write(self.fd, command) == 1
        except OSError:
            return False

    def patience(self, seconds: float) -> None:
        """How long `answered` waits."""
        whole, rest = divmod(seconds, 1)
        with socket.socket(fileno=os.dup(self.fd)) as line:
            limit = struct.pack("ll", int(whole), int(rest * 1e6) or int(whole == 0))
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)

    def answered(self) -> bytes:
        """The byte it answered with; nothing if it is gone. Raises when patience is at its end."""
        while True:
            before = self.progress and self.progress()
            try:
                return os.read(self.fd, 1)
            except BlockingIOError:
                if self.progress is None or self.progress() == before:
                    raise
            except OSError:
                return b""

    def silent(self) -> bool:
        """Whether it has said nothing yet."""
        return not select.select([self.fd], [], [], 0)[0]

    def told_error(self) -> Exception:
        """The error that the process just announced."""
        return self.error(self.talk.recv())

    def error(self, told: tuple[str, str, str]) -> Exception:
        """An error of the process, with its traceback as a note."""
        kind, sentence, trace = told
        if kind in SPOKEN:
            return SPOKEN[kind](sentence)
        found = self.fault(sentence if kind == "EnvironmentFault" else f"{kind}: {sentence}")
        found.add_note(trace)
        return found

    def fault(self, what: str, words: Words = ("", "")) -> EnvironmentFault:
        """An error that names the environments of this process."""
        found = EnvironmentFault(f"worker of environments {self.which}: {what}{words[0]}")
        if words[1]:
            found.add_note(words[1])
        return found

    def last_words(self) -> Words:
        """How the process ended, or where it stands."""
        self.process.join(0.2)
        if self.process.exitcode is None and self.process.pid is not None:
            os.kill(self.process.pid, signal.SIGUSR1)  # it answers with a traceback
            self.trace.poll(0.5)
        where = b""
        while self.trace.poll(0.05) and (more := os.read(self.trace.fileno(), 1 << 16)):
            where += more
        return _ending(self.process.exitcode), where.decode(errors="replace").strip()

    def hang_up(self) -> None:
        """Ask the process to close its environments; it also understands the end of the line."""
        self.ask(worker.CLOSE)
        self.talk.close()

    def let_go(self) -> None:
        """Kill what is left of the process and free what it held."""
        self.gone = True
        self.process.kill()
        self.process.join(CLOSE_LIMIT)
        self.talk.close()
        self.trace.close()
        with contextlib.suppress(ValueError):  # not even SIGKILL ends a process that the disk holds
            self.process.close()


def shut_down(workers: Sequence[WorkerProcess]) -> None:
    """Ask every process to close, wait a little for all of them, and kill the rest."""
    present = [one for one in workers if not one.gone]
    for one in present:
        one.hang_up()
    waiting: list[Any] = [one.process.sentinel for one in present]
    deadline = time.monotonic() + CLOSE_LIMIT
    while waiting and (left := deadline - time.monotonic()) > 0:
        done = connection.wait(waiting, left)
        waiting = [sentinel for sentinel in waiting if sentinel not in done]
    for one in present:
        one.let_go()


def _ending(code: int | None) -> str:
    if code is None:
        return ""
    if code >= 0:
        return f" (exit code {code})"
    hint = ", perhaps for want of memory" if -code == signal.SIGKILL else ""
    return f" (killed by {signal.Signals(-code).name}{hint})"


def _pickled(make: Any) -> bytes:
    try:
        return pickle.dumps(make)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise UsageError(
            f"env_fns cannot be sent to a worker process ({error}); expected functions or classes "
            f"that a module defines, or functools.partial of such; use manager = 'simple' otherwise"
        ) from None


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


def anonymous_memory(size: int) -> int:
    """A file descriptor of shared memory that has no name and so cannot be left behind."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("operant")
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.ftruncate(fd, size)
    return fd
