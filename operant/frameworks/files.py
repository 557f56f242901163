"""Models in files `<name>_<version>.pt`, one a model, whole: what `save` and `load` write and read.

Reading runs no code: of a whole model, only classes that the live model is made of are unpickled.
"""

from __future__ import annotations

import io
import os
import pickle
import re
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_safetensors
from torch import Tensor, nn
from torch.nn.parallel import DataParallel

from operant.core.durable import Durable, open_regular
from operant.core.errors import CheckpointError, UsageError, suggest

Models = Mapping[str, nn.Module]  # by attribute of the framework
Directory = str | os.PathLike[str]
FILE = re.compile(r"(?P<name>.+)_(?P<version>\d{1,18})(?P<kind>\.pt|\.safetensors)")
SAFE = re.compile(r"[^/\\\0]+")


def save_models(
    models: Models,
    directory: Directory,
    names: Mapping[str, str] | None = None,
    version: int = 0,
) -> None:
    """Write each model into `<its name>_<version>.pt`; `names` are other names for some of them."""
    if not isinstance(version, int) or isinstance(version, bool) or version < 0:
        raise UsageError(f"version = {version!r}: expected an integer of at least 0")
    named, root = _named(models, names), Path(directory)
    contents = {name: _content(model) for name, model in named.items()}
    for name, content in contents.items():
        write_file(root, f"{name}_{version}.pt", content)


def load_models(
    models: Models,
    directory: Directory,
    names: Mapping[str, str] | None = None,
    version: int = -1,
) -> int:
    """Load every model from its file of this version; the version that was loaded.

    Where not all models have that version, the newest that all of them have. Nothing is loaded
    unless everything can be.
    """
    named, root = _named(models, names), Path(directory)
    if not root.is_dir():
        raise CheckpointError(f"{root}: there is no such directory to load models from")
    found = _versions(root, named)
    common = set.intersection(*(set(versions) for versions in found.values()))
    if not common:
        held = "; ".join(f"{k}: {sorted(v) or 'none'}" for k, v in found.items())
        raise CheckpointError(f"{root}: no version is there of every model ({held})")
    chosen = version if version in common else max(common)
    if version not in (-1, chosen):
        warnings.warn(
            f"{root}: version {version} is not there of every model; loading {chosen}", stacklevel=3
        )
    states = {name: _state(found[name][chosen], model) for name, model in named.items()}
    for name, model in named.items():
        model.load_state_dict(states[name])
    return chosen


def _named(models: Models, names: Mapping[str, str] | None) -> dict[str, nn.Module]:
    """The models by the names of their files."""
    given = dict(names or {})
    for attribute, name in given.items():
        if attribute not in models:
            raise UsageError(f"network_map: {attribute!r} is not saved{suggest(attribute, models)}")
        if not (isinstance(name, str) and SAFE.fullmatch(name)):
            raise UsageError(f"network_map[{attribute!r}] = {name!r}: expected a plain file name")
    named = {given.get(attribute, attribute): model for attribute, model in models.items()}
    if len(named) < len(models):
        raise UsageError(f"network_map = {given}: two models would have the same file")
    return named


def _versions(root: Path, names: Iterable[str]) -> dict[str, dict[int, Path]]:
    """By model: its files by version. Files without a version are none."""
    found: dict[str, dict[int, Path]] = {name: {} for name in names}
    for path in sorted(root.iterdir()):
        match = FILE.fullmatch(path.name)
        if match and match["name"] in found:
            found[match["name"]].setdefault(int(match["version"]), path)
    return found


def _content(model: nn.Module) -> bytes:
    """The bytes of a whole model, or of its weights alone where the whole could not be read."""
    plain = unwrapped(model)
    whole = io.BytesIO()
    try:
        torch.save(plain, whole)
        _read(io.BytesIO(whole.getvalue()), plain)
    except (pickle.PickleError, AttributeError, TypeError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0]
        warnings.warn(
            f"{type(plain).__name__} is saved as its state dict alone: a file of the whole module "
            f"could not be loaded again ({reason})",
            stacklevel=4,
        )
        whole = io.BytesIO()
        torch.save(plain.state_dict(), whole)
    return whole.getvalue()


def unwrapped(model: nn.Module) -> nn.Module:
    """The module inside of DataParallel and torch.compile, whose weights have plain names."""
    while isinstance(model, DataParallel) or type(model).__name__ == "OptimizedModule":
        inner = model.module if isinstance(model, DataParallel) else model._orig_mod
        assert isinstance(inner, nn.Module)
        model = inner
    return model


def _state(path: Path, model: nn.Module) -> dict[str, Any]:
    """The weights in a file, which must be those of the live model."""
    plain = unwrapped(model)
    try:
        with open_regular(path) as file:
            content = file.read()
        if path.suffix == ".safetensors":
            state: dict[str, Any] = load_safetensors(content)
        else:
            state = _read(io.BytesIO(content), plain)
    except (OSError, pickle.PickleError, RuntimeError, SafetensorError, ValueError, EOFError) as e:
        reason = str(e).strip().splitlines()[0] if str(e).strip() else type(e).__name__
        raise CheckpointError(f"{path}: cannot be loaded ({reason})") from None
    _check_fits(path, state, plain.state_dict())
    return state if plain is model else _renamed(state, plain, model)


def _read(file: io.BytesIO, model: nn.Module) -> dict[str, Any]:
    """The state dict of what a file holds, a whole model or a state dict."""
    kinds: list[Any] = [type(module) for module in model.modules()]
    with torch.serialization.safe_globals(list(dict.fromkeys(kinds))):
        held = torch.load(file, map_location="cpu", weights_only=True)
    state = held.state_dict() if isinstance(held, nn.Module) else held
    if not (isinstance(state, Mapping) and all(isinstance(name, str) for name in state)):
        raise ValueError(f"holds a {type(held).__name__}, neither a model nor a state dict")
    return dict(state)


def _check_fits(path: Path, state: Mapping[str, Any], live: Mapping[str, Any]) -> None:
    """Refuse weights of another model, before any of them is loaded."""
    lacking, extra = sorted(live.keys() - state.keys()), sorted(state.keys() - live.keys())
    if lacking or extra:
        raise CheckpointError(f"{path}: is of another model (lacks {lacking}, has also {extra})")
    for name, own in live.items():
        shape = getattr(state[name], "shape", None)
        if isinstance(own, Tensor) and shape != own.shape:
            raise CheckpointError(f"{path}: {name} is {shape}; the live model's is {own.shape}")


def _renamed(state: dict[str, Any], plain: nn.Module, model: nn.Module) -> dict[str, Any]:
    """The weights under the names that a wrapped model gives them."""
    return dict(zip(model.state_dict(), (state[name] for name in plain.state_dict()), strict=True))


def write_file(directory: Directory, name: str, content: bytes) -> Path:
    """Write beside, then rename, so that the file is whole at any moment; where it is."""
    path = Path(directory) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    durable, beside = Durable(), path.with_name(f".{path.name}.{os.getpid()}")
    try:
        durable.write(beside, [content])
        durable.rename(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    return path
