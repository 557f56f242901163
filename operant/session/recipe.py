"""What a recipe is."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any


@dataclass(frozen=True)
class Recipe:
    """Settings for one agent on the environments that a pattern names."""

    name: str
    algorithm: str
    pattern: str  # of environment ids, such as ALE/*
    about: str
    settings: dict[str, Any] = field(default_factory=dict)  # as in a configuration file

    def fits(self, env_id: str) -> bool:
        """Whether the recipe is meant for this environment."""
        return fnmatchcase(env_id, self.pattern)
