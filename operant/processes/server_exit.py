"""Imported by the fork server: removes its directory if the program was killed and cannot.

multiprocessing keeps the server's socket in a directory `pymp-…` under the temporary one, which the
program removes when it ends. The server outlives a program that is killed, for some milliseconds.
"""

from __future__ import annotations

import atexit
import os
import socket
import sys
from contextlib import suppress

PREFIX = "pymp-"  # of multiprocessing's temporary directories


def remove_if_orphaned(directory: str, parent: int) -> None:
    """Remove the directory, unless the program is still there and uses it."""
    if os.getppid() == parent:
        return
    with suppress(OSError):  # the program removed it itself
        for name in os.listdir(directory):
            os.unlink(f"{directory}/{name}")
        os.rmdir(directory)


def socket_directory() -> str:
    """The temporary directory of the socket that this process listens on, or an empty string."""
    for name in os.listdir("/proc/self/fd") if sys.platform == "linux" else ():
        with suppress(OSError, ValueError):
            with socket.socket(fileno=os.dup(int(name))) as line:
                address = line.getsockname()
            directory = address.rpartition("/")[0] if isinstance(address, str) else ""
            if directory.rpartition("/")[2].startswith(PREFIX):
                return directory
    return ""


if "multiprocessing.forkserver" in " ".join(sys.orig_argv) and (found := socket_directory()):
    # Worker processes inherit this, but end without it.
    atexit.register(remove_if_orphaned, found, os.getppid())
