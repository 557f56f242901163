"""The Gymnasium environment behind a manager."""

from __future__ import annotations

from typing import Any

from operant.core.protocols import EnvironmentManager


def simulator_of(manager: EnvironmentManager) -> Any:
    """The environment, or vector environment, behind a manager in this process."""
    first = next(iter(getattr(manager, "envs", [manager])))
    return getattr(first, "env", first)
