"""Standard output and error that take any text, whatever the terminal or the shell made of them."""

from __future__ import annotations

import io
import os
import sys


def prepare_streams() -> None:
    """Let no character and no closed stream end a command: one becomes `\\xb1`, one nothing.

    A descriptor that the shell closed (`>&-`) would be taken by the next file that is opened, and
    what is printed would go into it.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    for number, name in ((1, "stdout"), (2, "stderr")):
        stream = getattr(sys, name)
        if stream is None:
            stream = open(number, "w", closefd=False, encoding="utf-8")  # noqa: SIM115
            setattr(sys, name, stream)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
