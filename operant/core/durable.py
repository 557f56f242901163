"""File operations that survive a crash, with a hook before each so that tests can crash there."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from io import FileIO
from pathlib import Path
from typing import NamedTuple

PIECE = 1 << 23  # bytes read or written at once


class Digest(NamedTuple):
    """The size of a file and its SHA-256."""

    size: int
    sha256: str


class Durable:
    """Writes, renames and removals that have reached the disk when they return.

    `before` is called with a description of each operation.
    """

    def __init__(self, before: Callable[[str], None] = lambda operation: None) -> None:
        self.before = before

    def make(self, directory: Path) -> None:
        self.before(f"make {directory.name}")
        directory.mkdir()

    def write(self, path: Path, pieces: Iterable[bytes]) -> Digest:
        """Write `pieces` to a new file; the digest of the bytes written."""
        self.before(f"write {path.name}")
        hasher, size = hashlib.sha256(), 0
        with path.open("xb", buffering=0) as file:
            for piece in pieces:
                hasher.update(piece)
                _write_all(file, piece)
                size += len(piece)
            self.before(f"sync {path.name}")
            os.fsync(file.fileno())
        return Digest(size, hasher.hexdigest())

    def rename(self, source: Path, target: Path) -> None:
        self.before(f"rename {source.name} to {target.name}")
        source.rename(target)
        self.sync(target.parent)

    def remove(self, path: Path) -> None:
        """Remove a directory with all that is in it, or another file; of a link, not its target."""
        self.before(f"remove {path.name}")
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()

    def sync(self, directory: Path) -> None:
        self.before(f"sync {directory.name}/")
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def open_regular(path: Path, writing: bool = False) -> FileIO:
    """Open a regular file to read, or to read and write, made if need be; else an OSError.

    A link is not followed, a pipe or device not waited for.
    """
    flags = os.O_RDWR | os.O_CREAT if writing else os.O_RDONLY
    flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o666)
    file = os.fdopen(descriptor, "r+b" if writing else "rb", buffering=0)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        file.close()
        raise OSError(None, "not a regular file", str(path))
    return file


def digest(path: Path) -> Digest:
    """The digest of a file on disk."""
    hasher, size = hashlib.sha256(), 0
    with open_regular(path) as file:
        for piece in _pieces(file):
            hasher.update(piece)
            size += len(piece)
    return Digest(size, hasher.hexdigest())


def _pieces(file: FileIO) -> Iterator[memoryview]:
    buffer = memoryview(bytearray(PIECE))
    while count := file.readinto(buffer):
        yield buffer[:count]


def _write_all(file: FileIO, piece: bytes) -> None:
    view = memoryview(piece)
    while view:
        view = view[file.write(view) :]
