"""Standard output and error that may be closed, full or gone without ending what writes to them."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import Any, TextIO


def to_nothing(descriptor: int) -> None:
    """Let a file descriptor lead nowhere, so that writing to it succeeds."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)


class LastingStream:
    """A stream of text that discards what can no longer be written, after saying so once."""

    def __init__(self, stream: TextIO, name: str) -> None:
        self._stream, self._name, self._lost = stream, name, False

    def write(self, text: str) -> int:
        """Write what can be written."""
        try:
            return self._stream.write(text)
        except OSError as error:
            self._give_up(error)
            return len(text)

    def flush(self) -> None:
        """Hand what was written to the operating system."""
        try:
            if not self._stream.closed:
                self._stream.flush()
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        """Discard what is in the buffer and what is still to come."""
        with suppress(OSError, ValueError):  # a stream of the user's own may have no descriptor
            to_nothing(self._stream.fileno())
        if not self._lost and self._name:
            self._lost = True
            reason = f"{self._name}: {error.strerror or error}"
            print(f"operant: warning: {reason}; training goes on without it", file=sys.stderr)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def lasting_output(stdout: bool = True) -> Iterator[None]:
    """Go on when a terminal is closed, a reader such as `head` ends, or a disk is full.

    `stdout` False is for errors and warnings only.
    """
    with ExitStack() as stack:
        stack.callback(discard_unwritten, sys.stderr)
        stack.enter_context(redirect_stderr(_lasting(sys.stderr, "")))
        if stdout:
            stack.callback(discard_unwritten, sys.stdout)
            stack.enter_context(redirect_stdout(_lasting(sys.stdout, "standard output")))
        yield


def discard_unwritten(stream: TextIO) -> None:
    """Flush a stream, or forget what it cannot write: Python would fail with it when it ends."""
    LastingStream(stream, "").flush()


def _lasting(stream: TextIO, name: str) -> Any:
    return stream if isinstance(stream, LastingStream) else LastingStream(stream, name)


@contextmanager
def output_to_stderr() -> Iterator[None]:
    """Send what anybody prints to standard error, also libraries in C and worker processes."""
    sys.stdout.flush()
    with ExitStack() as stack:
        with suppress(OSError):
            saved = os.dup(1)
            stack.callback(os.close, saved)
            os.dup2(2, 1)
            stack.callback(os.dup2, saved, 1)
            stack.callback(ctypes.CDLL(None).fflush, None)  # what libraries have not yet written
        stack.enter_context(redirect_stdout(sys.stderr))
        yield
