"""Checkpoints: `ckpt-<step>/` directories that are complete or not there, and never run code.

A checkpoint is written beside, flushed, verified and renamed. `MANIFEST.json` names the size and
SHA-256 of the two other files, `state.json` and `tensors.safetensors`; what does not agree with
it is not loaded.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError, safe_open
from torch import Tensor

from operant.core.errors import CheckpointError
from operant.session.checkpoint.durable import Durable, open_regular
from operant.session.checkpoint.encoding import decode, encode, safetensors
from operant.session.checkpoint.manifest import MANIFEST, STATE, TENSORS, make_manifest, verify

NAME = re.compile(r"ckpt-(\d{12})(\.old)?")  # `.old` exists only while its step is saved again
TEMPORARY = ".tmp-"
LARGE = 64 << 20  # bytes of a tensor that is read from its file only where it is needed


class Checkpoint(NamedTuple):
    """A checkpoint that was read and agrees with its manifest."""

    step: int
    state: Any
    manifest: dict[str, Any]
    path: Path


def save(
    directory: Path,
    step: int,
    state: dict[str, Any],
    *,
    keep: int = 3,
    reasons: Sequence[str] = (),
    extra: dict[str, Any] | None = None,
    before: Callable[[str], None] = lambda operation: None,
) -> Path:
    """Save `state` as `ckpt-<step>`, then remove all but the `keep` newest.

    `reasons` say why going on from here is not bit for bit, if it is not; `extra` is kept in the
    manifest. Checkpoints of later steps belong to a future that was given up, and are removed.
    """
    if step < 0 or keep < 1:
        raise ValueError(f"step = {step}, keep = {keep}: expected at least 0 and at least 1")
    final = directory / f"ckpt-{step:012d}"
    temporary = directory / f"{TEMPORARY}{step:012d}-{os.getpid()}"
    files = Durable(before)
    skeleton, tensors = encode(state)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        _sweep(directory, files)
        files.make(temporary)
        digests = {
            TENSORS: files.write(temporary / TENSORS, safetensors(tensors)),
            STATE: files.write(temporary / STATE, [_json(skeleton)]),
        }
        manifest = make_manifest(step, digests, list(reasons), extra or {})
        files.write(temporary / MANIFEST, [_json(manifest, indent=1)])
        files.sync(temporary)
        verify(temporary)
        _publish(temporary, final, files)
        _prune(directory, step, keep, files)
    except OSError as error:
        raise CheckpointError(f"{final}: could not be saved: {error.strerror or error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return final


def load(path: Path) -> Checkpoint:
    """Read exactly this checkpoint; what is torn or altered is refused by name."""
    manifest = verify(path)
    if NAME.fullmatch(path.name) and _step(path) != manifest["step"]:
        raise CheckpointError(f"{path}: holds step {manifest['step']}, not the one in its name")
    try:
        with open_regular(path / STATE) as file:
            skeleton = json.loads(file.read())
        with safe_open(path / TENSORS, framework="pt") as stored:
            tensors = {name: _taken(stored.get_tensor(name)) for name in stored.keys()}  # noqa: SIM118  # not a dict
    except (OSError, ValueError, RecursionError, SafetensorError) as error:
        raise CheckpointError(f"{path}: cannot be read: {error}") from None
    try:
        return Checkpoint(manifest["step"], decode(skeleton, tensors), manifest, path)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from None


def _taken(mapped: Tensor) -> Tensor:
    """A copy, since others may write the file; a replay may not fit into memory twice."""
    return mapped if mapped.nbytes >= LARGE else mapped.clone()


def newest(directory: Path, warn: Callable[[str], None] = lambda message: None) -> Checkpoint:
    """The newest checkpoint that is whole; `warn` hears of each that is not.

    With none left this is an error: a run is never begun again in silence.
    """
    found = listing(directory)
    for path in reversed(found):
        try:
            return load(path)
        except CheckpointError as error:
            warn(f"checkpoint refused: {error}")
    if not found:
        raise CheckpointError(f"{directory}: holds no checkpoint")
    names = ", ".join(path.name for path in found)
    raise CheckpointError(f"{directory}: none of its checkpoints is whole ({names})")


def listing(directory: Path) -> list[Path]:
    """All checkpoints there, oldest first; whether they are whole is not looked at."""
    if not directory.is_dir():
        return []
    found = [path for path in directory.iterdir() if NAME.fullmatch(path.name)]
    return sorted(found, key=lambda path: (_step(path), not path.name.endswith(".old")))


def _step(path: Path) -> int:
    match = NAME.fullmatch(path.name)
    return int(match[1]) if match else -1


def _json(value: Any, indent: int | None = None) -> bytes:
    return json.dumps(value, indent=indent, allow_nan=False).encode("utf-8")


def _publish(temporary: Path, final: Path, files: Durable) -> None:
    """Rename into place; one of the same step stays loadable until the new one is there."""
    old = final.with_name(final.name + ".old")
    if final.exists():
        if old.exists():
            files.remove(old)
        files.rename(final, old)
    files.rename(temporary, final)


def _prune(directory: Path, step: int, keep: int, files: Durable) -> None:
    found = listing(directory)
    current = [path for path in found if _step(path) <= step and not path.name.endswith(".old")]
    for path in found:
        if path not in current[-keep:]:
            # Under a temporary name first: a removal cut short leaves nothing that looks whole.
            aside = directory / f"{TEMPORARY}{path.name}"
            files.rename(path, aside)
            files.remove(aside)


def _sweep(directory: Path, files: Durable) -> None:
    """Remove what interrupted saves and removals left; the run's lock says they are not alive."""
    for path in list(directory.iterdir()):
        if path.name.startswith(TEMPORARY):
            files.remove(path)
