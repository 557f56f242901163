"""SIGINT, SIGTERM and SIGHUP end a command at once, wherever it is."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from types import FrameType
from typing import Any

from operant.session.stop_signal import stop_signals

GRACE = 1.5  # seconds for a command to end by itself
LATE = b"operant: error: interrupted; the last checkpoint is complete\n"


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Raise KeyboardInterrupt at a signal; a command that does not end of it is ended.

    Python calls no handler while a library computes, and libraries may take an exception for one
    of their own. So a thread that the system wakes up waits for the end. While a run trains it has
    handlers of its own, and these here do nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can handle signals
        return
    came: list[int] = []
    ended = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        came.append(number)
        raise KeyboardInterrupt(number)

    def watch() -> None:
        while word := os.read(woken, 1):
            if signal.getsignal(word[0]) is handle and not ended.wait(GRACE):
                with suppress(OSError):  # the terminal may be gone
                    os.write(2, LATE)
                os._exit(128 + word[0])
        os.close(woken)

    woken, waking = os.pipe()
    os.set_blocking(waking, False)
    with ExitStack() as stack:
        stack.enter_context(_swallowed_silently(came))
        for number in stop_signals():
            stack.callback(signal.signal, number, signal.signal(number, handle))
        stack.callback(os.close, waking)
        stack.callback(
            signal.set_wakeup_fd, signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
        )
        stack.callback(ended.set)
        threading.Thread(target=watch, name="signals", daemon=True).start()
        try:
            yield
        except BaseException as error:
            if came and not isinstance(error, KeyboardInterrupt):
                raise KeyboardInterrupt(came[0]) from error  # what a library made of it
            raise


@contextmanager
def _swallowed_silently(came: list[int]) -> Iterator[None]:
    """Show no traceback where Python could not raise our exception: the thread ends us then."""
    shown = sys.unraisablehook

    def hook(ignored: Any) -> None:
        if not came or ignored.exc_type is not KeyboardInterrupt:
            shown(ignored)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = shown
