"""Every environment that can be made here, by id."""

from __future__ import annotations

import gymnasium

from operant.core.errors import UsageError
from operant.envs.providers.gymnasium import PROVIDERS, check_env_id, spec_of


def known_ids() -> list[str]:
    """Registered ids, those of installed providers included."""
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
    module, colon, name = env_id.rpartition(":")
    found = spec_of(env_id)
    return f"{module}{colon}{found.id if found else name}"
