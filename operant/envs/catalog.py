"""Every environment that can be made here, by id."""

from __future__ import annotations

import gymnasium

from operant.core.errors import UsageError
from operant.envs.gym import PROVIDERS, check_env_id


def known_ids() -> list[str]:
    """Registered ids, those of installed providers included."""
    for namespace in PROVIDERS:
        try:
            check_env_id(f"{namespace}/")
        except UsageError:
            continue  # asking is what registers it, and there is no such id, or no such package
    return sorted(gymnasium.registry)
