"""Code of users that a configuration would import: nothing of it runs unless it is trusted.

What is typed in a command is trusted, and so are runs that this user made: they carry the names of
what they import, signed with a key that only this user has.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from operant.config import load_yaml
from operant.core.errors import UsageError

# `module:Name`, or `module:Id-v0` as Gymnasium writes it: whatever is before a colon, but a device.
CODE = re.compile(r"(?!cuda:\d+$)[^:]+:.+", re.DOTALL)
# What is imported anyway: ids that these packages register, and our own callbacks; not whatever
# else their modules hold, such as `os.system` by the name `gymnasium.core:os.system`.
IDS = r"(ale_py|envpool|gymnasium|minatar):.*-v\d+"
KNOWN = re.compile(IDS + r"|operant\.callbacks:[A-Z]\w*(\(.*\))?")
SIGNATURE = "trust.json"  # in the directory of a run
KEY_BYTES = 32


def read_tree(path: Path, trust: bool = False) -> dict[str, Any]:
    """The settings in a configuration file, refused if it names code that is not trusted."""
    tree = load_yaml(path)
    named = code_named(tree)
    if not named or trust or set(named) <= signed(path.parent):
        return tree
    raise UsageError(
        f"{path}: would import {', '.join(named)}, and was not made by you on this machine; "
        f"read that code first, then allow it by --trust (in Python, trust=True)"
    )


def code_named(tree: Any) -> list[str]:
    """Every `module:Name` among settings, except what is imported anyway."""
    names = dict.fromkeys(text for text in _texts(tree) if CODE.fullmatch(text))
    return [name for name in names if not KNOWN.fullmatch(name)]


def sign(tree: Mapping[str, Any]) -> dict[str, Any]:
    """What a run of this user keeps: the names of what it imports, and a signature of them.

    Empty if it imports nothing, or there can be no key.
    """
    named, key = code_named(tree), _key()
    if not named or key is None:
        return {}
    return {"imports": named, "signature": _signature(key, named)}


def signed(run: Path) -> set[str]:
    """The names that the run at this path was signed for by this user."""
    try:
        found = json.loads((run / SIGNATURE).read_bytes())
        named, signature = [str(name) for name in found["imports"]], str(found["signature"])
    except (OSError, ValueError, KeyError, TypeError):
        return set()
    key = _key()
    if key is None or not hmac.compare_digest(_signature(key, named), signature):
        return set()
    return set(named)


def _texts(tree: Any) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    parts = tree.values() if isinstance(tree, Mapping) else tree if isinstance(tree, list) else ()
    for part in parts:
        yield from _texts(part)


def _signature(key: bytes, named: Sequence[str]) -> str:
    message = json.dumps(sorted(named)).encode()
    return hmac.new(key, message, hashlib.sha256).hexdigest()


def _key() -> bytes | None:
    """This user's key, made at the first call; None if it cannot be kept here."""
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    path = Path(state).expanduser() / "operant" / "key"
    with suppress(OSError, RuntimeError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not path.exists():
            _make_key(path)
        about, key = path.stat(), path.read_bytes()
        private = about.st_uid == os.getuid() and not about.st_mode & 0o077
        return key if private and len(key) == KEY_BYTES else None
    return None


def _make_key(path: Path) -> None:
    """A new key, which has its name only once it is whole; of two processes the first counts."""
    fresh = path.with_name(f".key-{os.getpid()}")
    with suppress(FileNotFoundError):
        fresh.unlink()
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(os.urandom(KEY_BYTES))
    with suppress(FileExistsError):
        os.link(fresh, path)
    fresh.unlink()
