"""Where the arrays of a replay lie, and how they are saved: in memory or on disk, compressed."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable
from math import prod
from tempfile import TemporaryFile
from typing import Any

import numpy as np

from operant.core.errors import UsageError
from operant.core.tree import Array
from operant.memory.rollout import Allocate

Save = Callable[[Array], Any]  # how rows go into a state
BLOCK = 1 << 22  # bytes compressed at a time
LEVEL = 1  # zlib's fastest: frames shrink about as well as with the slower ones
IMAGE = 4  # dimensions of images: rows, environments, height, width


def allocator(directory: str) -> Allocate:
    """What makes arrays of zeros: in memory, or, with a directory, in files there."""
    return Disk(directory) if directory else np.zeros


def where(allocate: Allocate) -> str:
    """The directory in which arrays are made; empty for memory."""
    return allocate.directory if isinstance(allocate, Disk) else ""


class Disk:
    """Arrays of zeros in files of `directory` that have no name, so none outlives the process.

    Their blocks are reserved: a write to a mapped file on a full disk would kill the process.
    """

    def __init__(self, directory: str) -> None:
        self.directory = directory
        free_space(directory)

    def __call__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        size = prod(shape) * dtype.itemsize
        with TemporaryFile(dir=self.directory) as file:
            try:
                os.posix_fallocate(file.fileno(), 0, max(size, 1))
            except OSError as error:
                raise self._refused(size, error) from None
            return np.asarray(np.memmap(file, dtype, "r+", shape=shape))

    def _refused(self, size: int, error: OSError) -> UsageError:
        free = free_space(self.directory) / 2**30
        return UsageError(
            f"replay_dir = {self.directory!r}: {error.strerror}: {free:.1f} GiB are free and the "
            f"replay needs {size / 2**30:.1f} GiB more; lower replay_size or name another directory"
        )


def free_space(directory: str) -> int:
    """Bytes that may be written to a directory; an error if it cannot be written."""
    try:
        with TemporaryFile(dir=directory):
            found = os.statvfs(directory)
    except OSError as error:
        raise UsageError(
            f"replay_dir = {directory!r}: {error.strerror or error}; expected a directory that "
            f"exists and can be written"
        ) from None
    return found.f_bavail * found.f_frsize


def pack(array: Array, directory: str = "") -> dict[str, Any]:
    """An array that lies in one piece, compressed block by block: in memory, or in a directory."""
    raw = array.reshape(-1).view(np.uint8)
    pieces = (raw[at : at + BLOCK] for at in range(0, len(raw), BLOCK))
    small = (zlib.compress(piece.data, LEVEL) for piece in pieces)
    # A bytearray: arrays over bytes cannot be written, and would be copied to be saved.
    blocks = filed(small, directory) if directory else [_bytes(bytearray(x)) for x in small]
    return {"shape": list(array.shape), "dtype": array.dtype.str, "blocks": blocks}


def filed(pieces: Iterable[bytes], directory: str) -> list[Array]:
    """Pieces as arrays over a file in `directory` that has no name, one after another."""
    with TemporaryFile(dir=directory) as file:
        ends = np.cumsum([file.write(piece) for piece in pieces])
        file.flush()
        whole = np.memmap(file, np.uint8, "r+") if len(ends) else np.zeros(0, np.uint8)
        return np.split(np.asarray(whole), ends[:-1])[: len(ends)]


def _bytes(raw: bytearray) -> Array:
    return np.frombuffer(raw, np.uint8)


def unpack(packed: dict[str, Any], target: Array) -> None:
    """Fill the first rows of `target` with what `pack` was given."""
    shape, dtype = tuple(packed["shape"]), np.dtype(packed["dtype"])
    if dtype != target.dtype or shape[1:] != target.shape[1:] or shape[0] > len(target):
        raise ValueError(f"saved rows are {dtype} {shape}, not {target.dtype} {target.shape}")
    raw = target[: shape[0]].reshape(-1).view(np.uint8)
    at = 0
    for block in packed["blocks"]:
        piece = np.frombuffer(_decompressed(block), np.uint8)
        raw[at : at + len(piece)] = piece
        at += len(piece)
    if at != len(raw):
        raise ValueError(f"saved rows hold {at} bytes, not {len(raw)}")


def _decompressed(block: Any) -> bytes:
    """One block; one that would grow beyond what was ever packed is refused, not unpacked."""
    stream = zlib.decompressobj()
    piece = stream.decompress(block, BLOCK)
    if not stream.eof:
        raise ValueError(f"a saved block is incomplete, or larger than {BLOCK} bytes")
    return piece


def saved(array: Array, compress: bool, directory: str = "") -> Any:
    """Rows as they go into a state: images that lie in one piece compressed, the rest as it is."""
    image = array.dtype == np.uint8 and array.ndim >= IMAGE and array.flags.c_contiguous
    return pack(array, directory) if compress and image else array


def load(target: Array, state: Any) -> None:
    """Put back what `saved` gave."""
    if isinstance(state, dict):
        unpack(state, target)
    else:
        target[: len(state)] = state
