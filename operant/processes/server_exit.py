"""Imported by the fork server: removes its directory if the program was killed and cannot.

multiprocessing keeps the server's socket in a directory `pymp-…` under the temporary one, which the
program removes when it ends. The server outlives a program that is killed, for some milliseconds.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import sys
from contextlib import suppress
from pathlib import Path

PREFIX = "pymp-"  # of multiprocessing's temporary directories


def remove_if_orphaned(directory: Path, parent: int) -> None:
    """Remove the directory, unless the program is still there and uses it."""
    if os.getppid() != parent:
        shutil.rmtree(directory, ignore_errors=True)


def socket_directory() -> Path | None:
    """The temporary directory of the socket that this process listens on, if there is one."""
    for name in os.listdir("/proc/self/fd") if sys.platform == "linux" else ():
        with suppress(OSError, ValueError):
            with socket.socket(fileno=os.dup(int(name))) as line:
                address = line.getsockname()
            path = Path(address if isinstance(address, str) else "").parent
            if path.name.startswith(PREFIX):
                return path
    return None


if "multiprocessing.forkserver" in " ".join(sys.orig_argv) and (found := socket_directory()):
    # Worker processes inherit this, but end without it.
    atexit.register(remove_if_orphaned, found, os.getppid())
