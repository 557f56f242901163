"""Run directories as somebody hostile would make them, each from a copy of a good one."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

from operant.session.checkpoint.checkpoint import listing

TRAP = """\
import os
os.mkdir({canary!r})
from own_agents import Own
from gymnasium.envs.classic_control import CartPoleEnv as Trap
"""


def resign(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a manifest and make its own hash right again, as an attacker would."""
    manifest = json.loads((path / "MANIFEST.json").read_text())
    del manifest["sha256"]
    change(manifest)
    text = json.dumps(manifest, sort_keys=True).encode()
    manifest["sha256"] = hashlib.sha256(text).hexdigest()
    (path / "MANIFEST.json").write_text(json.dumps(manifest))


def replace_file(path: Path, name: str, content: bytes) -> None:
    """Put other bytes into a checkpoint and make every hash agree with them."""
    (path / name).write_bytes(content)
    found = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    resign(path, lambda manifest: manifest["files"].update({name: found}))


class Canary:
    """Leaves a file where it was unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


class Place:
    """A run in its directory, what may not change beside it, and what may never appear."""

    def __init__(self, run: Path) -> None:
        self.run, self.outside = run, run.parent / "outside"
        self.canary = run.parent / "canary"
        self.outside.mkdir()
        (self.outside / "victim").write_text("precious\n")
        (self.outside / "folder").mkdir()
        (self.outside / "folder" / "deep").write_text("precious too\n")

    def snapshot(self) -> list[tuple[str, int, int, bytes]]:
        """Every name outside, with its kind, its time and its content."""
        found = []
        for path in sorted(self.outside.rglob("*")):
            about, text = path.lstat(), path.read_bytes() if path.is_file() else b""
            found.append((path.name, about.st_mode, about.st_mtime_ns, text))
        return found

    def edit(self, old: str, new: str) -> None:
        """Change the configuration."""
        config = self.run / "config.yaml"
        text = config.read_text()
        assert old in text
        config.write_text(text.replace(old, new, 1))

    def newest(self) -> Path:
        return listing(self.run / "checkpoints")[-1]

    def link(self, name: str, target: str) -> None:
        """Put a link in the place of a file or directory."""
        path = self.run / name
        if path.exists():
            path.rename(self.run.parent / f"moved-{path.name}")
        path.symlink_to(self.outside / target)


def code_of(place: Place) -> None:
    """Modules wherever Python could look: in the run and in the directory it is opened from."""
    trap = TRAP.format(canary=str(place.canary))
    for where in (place.run, place.run.parent):
        for name in ("evil", "torch", "gymnasium", "yaml", "sitecustomize"):
            (where / f"{name}.py").write_text(trap)


def code_in(old: str, new: str) -> Callable[[Place], None]:
    """A configuration that names code."""

    def change(place: Place) -> None:
        code_of(place)
        place.edit(old, new)

    return change


def pickles(place: Place) -> None:
    """A pickle in the place of every file that is read, with hashes that fit."""
    payload = pickle.dumps(Canary(place.canary))
    for name in ("state.json", "tensors.safetensors"):
        replace_file(place.newest(), name, payload)
    for name in ("run.json", "spaces.json", "metrics.jsonl", "timing.jsonl", "trust.json"):
        (place.run / name).write_bytes(payload)


def traversal(place: Place) -> None:
    """Names that lead out of the directory."""
    path = os.path.relpath(place.outside / "victim", place.newest())
    digest = {"size": 9, "sha256": hashlib.sha256(b"precious\n").hexdigest()}
    resign(place.newest(), lambda manifest: manifest["files"].update({path: digest}))
    origin: dict[str, Any] = {
        "from": {"run": "../outside/folder"},
        "command": ["../outside/victim"],
    }
    (place.run / "run.json").write_text(json.dumps(origin))
    argv = ["a2c", "--steps", "9", "--quiet"]
    plan = {"command": [], "runs": [{"name": "../outside/folder", "argv": argv}]}
    (place.run / "sweep.json").write_text(json.dumps(plan))


def sweep_of_code(place: Place) -> None:
    """A sweep whose commands name code."""
    code_of(place)
    argv = ["a2c", "--env.id", "evil:Trap", "--steps", "9", "--trust", "--quiet"]
    plan = {"command": [], "runs": [{"name": "one", "argv": argv}]}
    (place.run / "sweep.json").write_text(json.dumps(plan))


def links(place: Place) -> None:
    """Links in the place of what a command would write, follow or remove."""
    for name in ("run.lock", "metrics.jsonl", "timing.jsonl", "learning-curve.png", "error.txt"):
        place.link(name, "victim")
    for name in ("checkpoints", "best", "videos", "tensorboard"):
        place.link(name, "folder")


def one_link(place: Place) -> None:
    place.link("learning-curve.png", "victim")


def a_link_to_remove(place: Place) -> None:
    """What looks like the leftover of a save."""
    (place.run / "checkpoints" / ".tmp-000000000001-1").symlink_to(place.outside / "folder")


def pipes(place: Place) -> None:
    """Pipes, at which a reader would wait for ever."""
    for name in ("metrics.jsonl", "timing.jsonl", "run.json"):
        (place.run / name).unlink(missing_ok=True)
        os.mkfifo(place.run / name)


def pipe_for_settings(place: Place) -> None:
    (place.run / "config.yaml").unlink()
    os.mkfifo(place.run / "config.yaml")


def bombs(place: Place) -> None:
    """Files that claim to be, or become, far larger than they are."""
    header = (10 << 30).to_bytes(8, "little") + b"{}"
    replace_file(place.newest(), "tensors.safetensors", header)
    replace_file(place.newest(), "state.json", b"[" * 200_000)
    for name in ("run.json", "spaces.json", "trust.json", "done.json"):
        (place.run / name).write_text("[" * 200_000)
    with (place.run / "metrics.jsonl").open("ab") as log:
        log.write(b'{"step": ' + b"9" * 100_000 + b"}\n" + b"[" * 200_000 + b"\n")


def settings_bomb(place: Place) -> None:
    names = [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}' if i else '1'] * 9)}]" for i in range(12)]
    (place.run / "config.yaml").write_text("\n".join(names) + "\n")


def nested_settings(place: Place) -> None:
    (place.run / "config.yaml").write_text("a: " + "[" * 50_000 + "\n")


def wrong_kinds(place: Place) -> None:
    """JSON that is none of what is expected."""
    for name in ("run.json", "spaces.json", "trust.json", "done.json"):
        (place.run / name).write_text('["what", {"is": null}, 1e400, "\\ud800"]\n')
    lines = ["3", "null", '{"step": "x"}', '{"step": NaN, "eval/mean_reward": "high"}', "\x00"]
    (place.run / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    for path in listing(place.run / "checkpoints"):
        resign(path, lambda manifest: manifest.update(extra={"not finite": 3}, versions=[]))


KINDS: dict[str, Callable[[Place], None]] = {
    "an environment by path": code_in("id: CartPole-v1", "id: evil:Trap"),
    "an agent by path": code_in("algorithm: a2c", "algorithm: evil:Own"),
    "a wrapper by path": code_in("wrappers: []", "wrappers: ['evil:Trap']"),
    "a callback by path": code_in("callbacks: []", "callbacks: ['evil:Trap', 'os:mkdir']"),
    "a YAML tag": code_in("seed: 3", "seed: !!python/object/apply:os.mkdir [canary]"),
    "modules beside it": code_of,
    "pickles": pickles,
    "traversal": traversal,
    "a sweep of code": sweep_of_code,
    "links": links,
    "one link": one_link,
    "a link to remove": a_link_to_remove,
    "pipes": pipes,
    "a pipe for settings": pipe_for_settings,
    "bombs": bombs,
    "a bomb of settings": settings_bomb,
    "nested settings": nested_settings,
    "wrong kinds": wrong_kinds,
}
