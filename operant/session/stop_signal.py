"""SIGINT, SIGTERM and SIGHUP while a run trains."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from types import FrameType

STOPPING = b"\noperant: stopping after this update; a second signal quits at once\n"
ABANDONED = b"\noperant: stopping; the update that was being compiled is left out\n"


def stop_signals() -> list[int]:
    """The signals that end a command: Ctrl-C, a scheduler's, and that of a terminal that closes.

    The last one not where it is ignored, as under nohup.
    """
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([] if ignored else [signal.SIGHUP])]


class CompilationStopped(KeyboardInterrupt):
    """A signal came while torch compiled; the update under way is incomplete."""


class StopSignal:
    """The number of the first signal that came, if one did.

    It is honoured between updates. Compiling alone can take half a minute, and an update during
    which torch compiles is left at once, by a CompilationStopped.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self.compiling = False

    def __bool__(self) -> bool:
        return self.number is not None

    @contextmanager
    def handled(self, stop: Callable[[], None], compiled: bool) -> Iterator[None]:
        """Call `stop` at the first signal; the second one quits at once."""

        def handle(number: int, frame: FrameType | None) -> None:
            if self.number is not None:
                signal.signal(number, signal.SIG_DFL)  # a third one kills the process
                raise KeyboardInterrupt(number)
            self.number = number
            stop()
            with suppress(OSError):  # not `print`, which the signal may have interrupted
                os.write(2, ABANDONED if self.compiling else STOPPING)
            if self.compiling:
                raise CompilationStopped(number)

        if threading.current_thread() is not threading.main_thread():
            yield  # only the main thread can handle signals
            return
        with ExitStack() as stack:
            for number in stop_signals():
                stack.callback(signal.signal, number, signal.signal(number, handle))
            if compiled:
                stack.enter_context(self._watched_compiler())
            yield

    @contextmanager
    def _watched_compiler(self) -> Iterator[None]:
        """Know when torch compiles."""
        from torch._dynamo.callback import callback_handler  # noqa: PLC0415  # a second to import

        def begin(_: object) -> None:
            self.compiling = True

        def end(_: object) -> None:
            self.compiling = False

        callback_handler.register_start_callback(begin)
        callback_handler.register_end_callback(end)
        try:
            yield
        finally:
            callback_handler.remove_start_callback(begin)
            callback_handler.remove_end_callback(end)
