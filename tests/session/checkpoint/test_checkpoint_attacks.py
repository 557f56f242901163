"""Torn, altered and hostile checkpoints."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hostile import Canary, replace_file, resign

from operant.core.errors import CheckpointError
from operant.session.checkpoint.checkpoint import load, newest, save

FILES = ("MANIFEST.json", "state.json", "tensors.safetensors")


@pytest.fixture
def good(tmp_path: Path) -> Path:
    """The newer of two checkpoints; the older is the one to fall back to."""
    directory = tmp_path / "checkpoints"
    save(directory, 1, {"x": torch.ones(50), "step": 1})
    return save(directory, 2, {"x": torch.full((50,), 2.0), "step": 2})


def assert_falls_back(good: Path) -> None:
    with pytest.raises(CheckpointError, match=good.name):
        load(good)
    heard: list[str] = []
    assert newest(good.parent, heard.append).state["step"] == 1
    assert len(heard) == 1
    assert good.name in heard[0]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.8, 0.999])
def test_a_flipped_bit_is_found_and_the_one_before_is_used(
    good: Path, name: str, share: float
) -> None:
    raw = bytearray((good / name).read_bytes())
    raw[int(share * len(raw))] ^= 1
    (good / name).write_bytes(bytes(raw))
    assert_falls_back(good)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.7, 0.99])
def test_a_file_cut_short_is_found_and_the_one_before_is_used(
    good: Path, name: str, share: float
) -> None:
    size = (good / name).stat().st_size
    os.truncate(good / name, int(share * size))
    assert_falls_back(good)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(good: Path, name: str) -> None:
    (good / name).unlink()
    with pytest.raises(CheckpointError, match=f"{name}: No such file"):
        load(good)
    assert_falls_back(good)


def test_with_all_of_them_bad_nothing_begins_from_scratch(good: Path) -> None:
    for path in good.parent.iterdir():
        (path / "state.json").write_bytes(b"{}")
    heard: list[str] = []
    with pytest.raises(CheckpointError, match="none of its checkpoints is complete"):
        newest(good.parent, heard.append)
    assert len(heard) == 2


@pytest.mark.parametrize("name", ["../secret", "/etc/hostname", "sub/../../secret", "other.bin"])
def test_a_manifest_that_names_other_files_is_refused(good: Path, name: str) -> None:
    (good.parent / "secret").write_bytes(b"s")
    digest = {"size": 1, "sha256": hashlib.sha256(b"s").hexdigest()}
    resign(good, lambda manifest: manifest["files"].update({name: digest}))
    with pytest.raises(CheckpointError, match="names the files"):
        load(good)


@pytest.mark.parametrize("name", FILES)
def test_a_link_in_place_of_a_file_is_refused(good: Path, name: str, tmp_path: Path) -> None:
    (good / name).rename(tmp_path / name)
    (good / name).symlink_to(tmp_path / name)
    with pytest.raises(CheckpointError, match=name):
        load(good)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", FILES)
def test_a_pipe_in_place_of_a_file_does_not_hang(good: Path, name: str) -> None:
    (good / name).unlink()
    os.mkfifo(good / name)
    with pytest.raises(CheckpointError, match=f"{name}: not a regular file"):
        load(good)


def test_another_format_and_another_step_are_refused(good: Path) -> None:
    resign(good, lambda manifest: manifest.update(schema=99))
    with pytest.raises(CheckpointError, match="has format 99; this version reads 1"):
        load(good)
    resign(good, lambda manifest: manifest.update(schema=1, step=77))
    with pytest.raises(CheckpointError, match="holds step 77"):
        load(good)


@pytest.mark.parametrize("entry", [None, 5, [], {}, {"size": 0}, {"size": "1", "sha256": 1}])
def test_a_manifest_entry_of_the_wrong_kind_is_refused(good: Path, entry: Any) -> None:
    resign(good, lambda manifest: manifest["files"].update({"state.json": entry}))
    with pytest.raises(CheckpointError, match=r"state\.json: has \d+ bytes, not"):
        load(good)


@pytest.mark.parametrize("name", ["state.json", "tensors.safetensors"])
def test_a_pickle_in_place_of_a_file_never_runs(good: Path, name: str, tmp_path: Path) -> None:
    replace_file(good, name, pickle.dumps(Canary(tmp_path / "canary")))
    with pytest.raises(CheckpointError, match="cannot be read"):
        load(good)
    assert not (tmp_path / "canary").exists()


@pytest.mark.parametrize(
    "skeleton",
    [
        {"dict": {"x": {"tensor": "missing"}}},
        {"object": "os.system"},
        {"dict": {}, "tuple": []},
        {"scalar": ["O", "AAAAAAAAAAA="]},
        {"scalar": ["<f8", "AA=="]},
        {"bytes": "%%"},
        {"items": [[[1], 2]]},
        {"dict": 5},
    ],
)
def test_a_skeleton_that_is_not_ours_is_refused(good: Path, skeleton: Any) -> None:
    replace_file(good, "state.json", json.dumps(skeleton).encode())
    with pytest.raises(CheckpointError, match=r"state\.json: not a saved state"):
        load(good)


def test_a_skeleton_nested_without_end_is_refused(good: Path) -> None:
    replace_file(good, "state.json", b"[" * 100_000)
    with pytest.raises(CheckpointError, match="cannot be read"):
        load(good)


@pytest.mark.parametrize("length", [10 * 2**30, 2**63, 0])
def test_a_header_that_claims_gigabytes_is_refused(good: Path, length: int) -> None:
    replace_file(good, "tensors.safetensors", length.to_bytes(8, "little") + b"{}")
    with pytest.raises(CheckpointError, match="cannot be read"):
        load(good)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk needs to be allowed")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_costs_only_the_checkpoint_that_did_not_fit(small_disk: Path) -> None:
    save(small_disk, 1, {"x": torch.ones(1000), "step": 1})
    with pytest.raises(CheckpointError, match="could not be saved: No space left"):
        save(small_disk, 2, {"x": torch.ones(2_000_000), "step": 2})
    assert [path.name for path in small_disk.iterdir()] == ["ckpt-000000000001"]
    assert newest(small_disk).state["step"] == 1
    save(small_disk, 3, {"x": torch.ones(1000), "step": 3})
    assert newest(small_disk).state["step"] == 3
