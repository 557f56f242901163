"""The manifest of a checkpoint: its step, the versions that wrote it, and a digest of each file."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from operant.core.durable import Digest, digest, open_regular
from operant.core.errors import CheckpointError
from operant.session.versions import versions

SCHEMA = 1
MANIFEST, STATE, TENSORS = "MANIFEST.json", "state.json", "tensors.safetensors"
MAX_MANIFEST_SIZE = 1 << 26


def make_manifest(
    step: int, digests: dict[str, Digest], reasons: list[str], extra: dict[str, Any]
) -> dict[str, Any]:
    """The content of the manifest, which `verify` compares the files with."""
    content = {
        "schema": SCHEMA,
        "step": step,
        "exact": not reasons,
        "reasons": reasons,
        "versions": versions(),
        "files": {name: found._asdict() for name, found in digests.items()},
        "extra": extra,
    }
    return content | {"sha256": _own_hash(content)}


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of a checkpoint, if it is whole; its files are not looked at."""
    where = path / MANIFEST
    try:
        with open_regular(where) as file:
            manifest: Any = json.loads(file.read(MAX_MANIFEST_SIZE))
    except (ValueError, RecursionError):
        raise CheckpointError(f"{where}: is not JSON: incomplete or altered") from None
    except OSError as error:
        raise CheckpointError(f"{where}: {error.strerror}") from None
    if not isinstance(manifest, dict) or not _has_dicts(manifest, "files", "extra", "versions"):
        raise CheckpointError(f"{where}: is not a manifest")
    if manifest.get("schema") != SCHEMA:
        schema = manifest.get("schema")
        raise CheckpointError(f"{where}: has format {schema!r}; this version reads {SCHEMA}")
    # Only fixed names, so that no path can lead out of the directory.
    if set(manifest["files"]) != {STATE, TENSORS}:
        found = sorted(manifest["files"])
        raise CheckpointError(f"{where}: names the files {found}; expected {STATE} and {TENSORS}")
    if manifest.pop("sha256", None) != _own_hash(manifest) or not _is_typed(manifest):
        raise CheckpointError(f"{where}: was altered")
    return manifest


def _has_dicts(manifest: dict[str, Any], *names: str) -> bool:
    return all(isinstance(manifest.get(name), dict) for name in names)


def _is_typed(manifest: dict[str, Any]) -> bool:
    """Whether its fields have the types that they are written with."""
    texts = [*manifest["versions"].values(), *_list(manifest.get("reasons"))]
    kinds = [type(manifest.get(name)) for name in ("step", "exact", "reasons")]
    return kinds == [int, bool, list] and all(isinstance(text, str) for text in texts)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def verify(path: Path) -> dict[str, Any]:
    """The manifest, after checking that every file matches it."""
    manifest = read_manifest(path)
    for name, expected in manifest["files"].items():
        try:
            found = digest(path / name)
        except OSError as error:
            raise CheckpointError(f"{path / name}: {error.strerror}") from None
        size = expected.get("size") if isinstance(expected, dict) else expected
        if found.size != size:
            raise CheckpointError(f"{path / name}: has {found.size} bytes, not {size} as recorded")
        if found.sha256 != expected.get("sha256"):
            raise CheckpointError(f"{path / name}: does not have the SHA-256 that was recorded")
    return manifest


def _own_hash(content: dict[str, Any]) -> str:
    """The SHA-256 of the manifest's own content."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode("utf-8")).hexdigest()
