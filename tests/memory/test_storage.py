"""Arrays in memory or on disk, and compressed."""

from __future__ import annotations

import errno
import os
import zlib
from mmap import mmap
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operant.core.errors import UsageError
from operant.core.tree import Array
from operant.memory import storage
from operant.memory.storage import Disk, allocator, pack, unpack

UINT8 = np.dtype(np.uint8)


@settings(max_examples=30, deadline=None)
@given(rows=st.integers(0, 40), side=st.integers(1, 9), block=st.integers(1, 500))
def test_what_is_packed_is_unpacked(rows: int, side: int, block: int) -> None:
    images = np.random.default_rng(rows).integers(0, 3, (rows, 2, side, side), np.uint8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage, "BLOCK", block)
        packed = pack(images)
    target = np.full((41, 2, side, side), 9, np.uint8)
    unpack(packed, target)
    assert (target[:rows] == images).all()
    assert (target[rows:] == 9).all()
    assert len(packed["blocks"]) == -(-images.size // block)


def root(array: Any) -> Any:
    """What an array's bytes are taken from in the end."""
    base = getattr(array, "base", None)
    return array if base is None else root(base)


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_what_is_packed_on_disk_is_unpacked_and_leaves_no_file(rows: int, tmp_path: Path) -> None:
    images = np.random.default_rng(rows).integers(0, 3, (rows, 2, 5, 5), np.uint8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage, "BLOCK", 64)
        packed = pack(images, str(tmp_path))
    target = np.zeros((7, 2, 5, 5), np.uint8)
    unpack(packed, target)
    assert (target[:rows] == images).all()
    assert {type(root(block)) for block in packed["blocks"]} <= {mmap}
    assert list(tmp_path.iterdir()) == []


def test_images_with_much_of_one_colour_shrink() -> None:
    images = np.zeros((50, 1, 84, 84), np.uint8)
    images[:, 0, 40:44, 10:14] = 200
    assert sum(block.nbytes for block in pack(images)["blocks"]) < images.nbytes / 50


@pytest.mark.parametrize(
    ("array", "packs"),
    [
        (np.zeros((3, 2, 5, 5), np.uint8), True),
        (np.zeros((3, 2, 5), np.uint8), False),
        (np.zeros((3, 2, 5, 5), np.float32), False),
        (np.zeros((3, 2, 5, 10), np.uint8)[..., ::2], False),
    ],
)
def test_only_images_in_one_piece_are_compressed(array: Array, packs: bool) -> None:
    assert isinstance(storage.saved(array, compress=True), dict) == packs
    assert storage.saved(array, compress=False) is array


def test_rows_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match=r"saved rows are uint8 \(3, 2, 5, 5\), not"):
        unpack(pack(np.zeros((3, 2, 5, 5), np.uint8)), np.zeros((9, 2, 5, 4), np.uint8))


def test_arrays_on_disk_are_zeros_that_keep_what_is_written(tmp_path: Path) -> None:
    array = allocator(str(tmp_path))((1000, 3), np.dtype(np.float32))
    assert array.sum() == 0
    array[7] = 2.5
    assert array.sum() == 7.5
    assert type(array) is np.ndarray


def test_nothing_is_left_behind_and_blocks_are_reserved(tmp_path: Path) -> None:
    before = storage.free_space(str(tmp_path))
    array = Disk(str(tmp_path))((1 << 28,), UINT8)
    assert list(tmp_path.iterdir()) == []
    assert array.nbytes == 1 << 28
    assert storage.free_space(str(tmp_path)) < before - (1 << 27)  # others write, too


def test_without_a_directory_arrays_are_in_memory() -> None:
    assert allocator("") is np.zeros


@pytest.mark.parametrize("name", ["absent", "file"])
def test_what_is_no_directory_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=rf"replay_dir = '.*{name}': .*; expected a directory"):
        allocator(str(tmp_path / name))


def test_a_directory_that_cannot_be_written_is_refused() -> None:
    with pytest.raises(UsageError, match=r"replay_dir = '/proc/1': .* can be written"):
        allocator("/proc/1")


def test_a_disk_too_small_is_refused_with_the_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_bavail=1, f_frsize=1 << 30))
    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(UsageError, match=r"No space left.*1.0 GiB are free .* needs 2.0 GiB more"):
        Disk(str(tmp_path))((2 << 30,), UINT8)


def test_a_block_that_would_grow_without_end_is_refused() -> None:
    packed = pack(np.zeros((1, 1, 8, 8), np.uint8))
    packed["blocks"] = [np.frombuffer(zlib.compress(bytes(64 << 20)), np.uint8)]
    with pytest.raises(ValueError, match="larger than"):
        unpack(packed, np.zeros((1, 1, 8, 8), np.uint8))


def test_blocks_that_hold_too_little_are_refused() -> None:
    packed = pack(np.ones((2, 1, 8, 8), np.uint8))
    packed["blocks"] = [np.frombuffer(zlib.compress(bytes(8)), np.uint8)]
    with pytest.raises(ValueError, match="hold 8 bytes, not 128"):
        unpack(packed, np.zeros((2, 1, 8, 8), np.uint8))
