"""Standard output and error that take any text, whatever the terminal or the shell made of them."""

from __future__ import annotations

import io
import os
import sys


def prepare_streams() -> None:
    """Let no character and no closed stream end a command: one becomes `\\xb1`, one nothing.

    A descriptor that the shell closed (`>&-`) would be taken by the next file that is opened, and
    what a library prints would go into it.
    """
    for number, name in ((1, "stdout"), (2, "stderr")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, _nowhere(number))
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _nowhere(number: int) -> io.TextIOWrapper:
    opened = os.open(os.devnull, os.O_WRONLY)
    if opened != number:
        os.dup2(opened, number)
        os.close(opened)
    return open(number, "w", closefd=False, encoding="utf-8", errors="backslashreplace")
