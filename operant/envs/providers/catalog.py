"""Every environment that can be made here, by id: registration, lookup and clear refusals."""

from __future__ import annotations

import importlib
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from operant.core.errors import UsageError, suggest
from operant.envs import probe_tasks
from operant.envs.providers import envpool, minatar
from operant.envs.providers.own import own

PROVIDERS = {  # namespace: the module that registers its ids, and the extra that installs it
    "ALE": ("ale_py", "atari"),
    "MinAtar": ("minatar.gym", "minatar"),
    "envpool": ("envpool", "envpool"),
    "mujoco": ("mujoco", "mujoco"),
}
MUJOCO = "gymnasium.envs.mujoco"


def known_ids() -> list[str]:
    """All ids that are registered, those of installed providers included."""
    for namespace in PROVIDERS:
        try:
            check_env_id(f"{namespace}/")
        except UsageError:
            continue  # asking is what registers it, and there is no such id, or no such package
    return sorted(gymnasium.registry)


def full_id(env_id: str) -> str:
    """The id with its version: a run that is saved must mean the same one later."""
    try:
        check_env_id(env_id)
    except UsageError as error:
        raise UsageError(f"env.{error}") from None
    except Exception as error:  # whatever the module of an id such as `module:Name-v0` raises
        what = f"{type(error).__name__}: {error}"
        raise UsageError(f"env.id = {env_id!r}: cannot be imported: {what}") from error
    if own(env_id):
        return env_id
    module, colon, name = env_id.rpartition(":")
    found = spec_of(env_id)
    return f"{module}{colon}{found.id if found else name}"


def check_env_id(env_id: str) -> None:
    """Raise an error for an id that cannot be made, before anything starts."""
    if own(env_id):
        return None
    module, _, name = env_id.rpartition(":")
    _import(module, env_id)
    _register(name.rpartition("/")[0], env_id)
    if envpool.is_envpool(name):
        return envpool.check_task(provider("envpool", env_id), env_id)
    spec = spec_of(env_id)
    if spec is None:
        near = [name for name in gymnasium.registry if name.startswith(env_id[:3])]
        hint = suggest(env_id, near or gymnasium.registry)
        lacks = f"module {module!r} has no {name!r}, and " if module else ""
        raise UsageError(f"id = {env_id!r}: {lacks}no such environment{hint}")
    if str(spec.entry_point).startswith(MUJOCO):
        provider("mujoco", env_id)
    return None


def spec_of(env_id: str) -> EnvSpec | None:
    """What is registered under an id; without a version it is the latest, as in Gymnasium."""
    if own(env_id):
        return None
    name = env_id.rpartition(":")[2]
    versions = [known for known in gymnasium.registry if known.startswith(name + "-v")]
    latest = max(versions, key=lambda known: int(known.rsplit("-v", 1)[1]), default="")
    return gymnasium.registry.get(name) or gymnasium.registry.get(latest)


def provider(namespace: str, env_id: str) -> Any:
    """The module behind a namespace; an error says how to install it if it is missing."""
    module, extra = PROVIDERS[namespace]
    try:
        with minatar.without_warnings():
            return importlib.import_module(module)
    except ImportError as error:
        raise UsageError(
            f"id = {env_id!r} needs the package {module.partition('.')[0]!r} ({error}); "
            f"install it with: pip install 'operant[{extra}]'"
        ) from None


def _register(namespace: str, env_id: str) -> None:
    """Register the ids of a known namespace: Gymnasium leaves the import to its user."""
    if namespace == "operant":
        return probe_tasks.register()
    if namespace not in PROVIDERS or any(k.startswith(namespace + "/") for k in gymnasium.registry):
        return None
    module = provider(namespace, env_id)
    if namespace == "MinAtar":
        minatar.register(module)
    elif namespace == "ALE":
        gymnasium.register_envs(module)
    return None


def _import(module: str, env_id: str) -> None:
    """Import the module of an id such as `package.module:Name-v0`, which registers it."""
    try:
        importlib.import_module(module or "gymnasium")
    except ImportError as error:
        raise UsageError(
            f"id = {env_id!r}: module {module!r} cannot be imported ({error}); "
            f"expected a module on the Python path that registers the environment"
        ) from error
