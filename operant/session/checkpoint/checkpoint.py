"""Checkpoints: `ckpt-<step>/` directories that are complete or absent, and run no code.

A checkpoint is written under a temporary name, flushed, verified and renamed. `MANIFEST.json` has
the size and SHA-256 of the two other files, `state.json` and `tensors.safetensors`; a checkpoint
that does not match its manifest is not loaded.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError, safe_open
from torch import Tensor

from operant.core.durable import Durable, open_regular
from operant.core.errors import CheckpointError
from operant.session.checkpoint.encoding import decode, encode, safetensors
from operant.session.checkpoint.manifest import (
    MANIFEST,
    STATE,
    TENSORS,
    make_manifest,
    read_manifest,
    verify,
)

NAME = re.compile(r"ckpt-(\d{12})(\.old)?")  # `.old` exists only while its step is saved again
TEMPORARY = ".tmp-"
BROKEN = "not finite"  # in the manifest: names of weights
MAPPED_SIZE = 64 << 20  # bytes from which on a tensor stays memory-mapped


class Checkpoint(NamedTuple):
    """A checkpoint that was read and matches its manifest."""

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
    broken: Sequence[str] = (),
    extra: dict[str, Any] | None = None,
    before: Callable[[str], None] = lambda operation: None,
) -> Path:
    """Save `state` as `ckpt-<step>`, then remove all but the `keep` newest.

    `reasons` say why resuming from it is not bit for bit, if so. `broken` names weights that are
    not finite, if any: a run never goes on from such a checkpoint, and the newest without stays.
    `extra` is kept in the manifest.
    Checkpoints of later steps, left by a run that was since resumed from earlier, are removed.
    """
    if step < 0 or keep < 1:
        raise ValueError(f"step = {step}, keep = {keep}: expected at least 0 and at least 1")
    final = directory / f"ckpt-{step:012d}"
    temporary = directory / f"{TEMPORARY}{step:012d}-{os.getpid()}"
    files = Durable(before)
    skeleton, tensors = encode(state)
    try:
        directory.mkdir(exist_ok=True)  # in a run that is there: one that is gone is not made anew
        _remove_leftovers(directory, files)
        files.make(temporary)
        digests = {
            TENSORS: files.write(temporary / TENSORS, safetensors(tensors)),
            STATE: files.write(temporary / STATE, [_json(skeleton)]),
        }
        told = {**(extra or {}), **({BROKEN: list(broken)} if broken else {})}
        manifest = make_manifest(step, digests, list(reasons), told)
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
    """Read this checkpoint; an incomplete or altered one is an error."""
    manifest = verify(path)
    if NAME.fullmatch(path.name) and step_of(path) != manifest["step"]:
        raise CheckpointError(f"{path}: holds step {manifest['step']}, not the one in its name")
    try:
        with open_regular(path / STATE) as file:
            skeleton = json.loads(file.read())
        with safe_open(path / TENSORS, framework="pt") as stored:
            tensors = {name: _copied(stored.get_tensor(name)) for name in stored.keys()}  # noqa: SIM118  # not a dict
    except (OSError, ValueError, RecursionError, SafetensorError) as error:
        raise CheckpointError(f"{path}: cannot be read: {error}") from None
    try:
        return Checkpoint(manifest["step"], decode(skeleton, tensors), manifest, path)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from None


def _copied(mapped: Tensor) -> Tensor:
    """A copy, as others may write the file, but not of large tensors, such as a replay buffer's."""
    return mapped if mapped.nbytes >= MAPPED_SIZE else mapped.clone()


def newest(directory: Path, warn: Callable[[str], None] = lambda message: None) -> Checkpoint:
    """The newest complete checkpoint with finite weights; `warn` is called for each that is not.

    If there is none this is an error, so that a run never silently starts again.
    """
    found = listing(directory)
    for path in reversed(found):
        try:
            if broken := broken_weights(path):
                raise CheckpointError(f"{path}: {', '.join(broken[:3])} hold NaN or infinity")
            return load(path)
        except CheckpointError as error:
            warn(f"checkpoint refused: {error}")
    if not found:
        raise CheckpointError(f"{directory}: holds no checkpoint")
    names = ", ".join(path.name for path in found)
    raise CheckpointError(f"{directory}: none of its checkpoints is complete ({names})")


def broken_weights(path: Path) -> list[str]:
    """Names of weights in a checkpoint that are not finite, as its manifest says."""
    return list(map(str, read_manifest(path)["extra"].get(BROKEN, ())))


def listing(directory: Path) -> list[Path]:
    """All checkpoints in a directory, oldest first, complete or not."""
    if not directory.is_dir():
        return []
    found = [path for path in directory.iterdir() if NAME.fullmatch(path.name)]
    return sorted(found, key=lambda path: (step_of(path), not path.name.endswith(".old")))


def step_of(path: Path) -> int:
    """The step in the name of a checkpoint."""
    match = NAME.fullmatch(path.name)
    return int(match[1]) if match else -1


def _json(value: Any, indent: int | None = None) -> bytes:
    return json.dumps(value, indent=indent, allow_nan=False).encode("utf-8")


def _publish(temporary: Path, final: Path, files: Durable) -> None:
    """Rename to the final name; an older one of the same step stays loadable until then."""
    old = final.with_name(final.name + ".old")
    if final.exists():
        if old.exists():
            files.remove(old)
        files.rename(final, old)
    files.rename(temporary, final)


def _prune(directory: Path, step: int, keep: int, files: Durable) -> None:
    found = listing(directory)
    current = [path for path in found if step_of(path) <= step and not path.name.endswith(".old")]
    kept = {*current[-keep:], *_newest_finite(current)}
    for path in found:
        if path not in kept:
            # Renamed first: an interrupted removal leaves nothing that looks like a checkpoint.
            doomed = directory / f"{TEMPORARY}{path.name}"
            files.rename(path, doomed)
            files.remove(doomed)


def _newest_finite(paths: Sequence[Path]) -> list[Path]:
    """The last of these checkpoints whose weights are finite, if there is one."""
    for path in reversed(paths):
        with suppress(CheckpointError):  # one that cannot be read is no help
            if not broken_weights(path):
                return [path]
    return []


def _remove_leftovers(directory: Path, files: Durable) -> None:
    """Remove what interrupted saves and removals left; the run's lock excludes live ones."""
    for path in list(directory.iterdir()):
        if path.name.startswith(TEMPORARY):
            files.remove(path)
