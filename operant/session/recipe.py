"""The type of a recipe: tuned settings for one agent on some environments."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any


@dataclass(frozen=True)
class Recipe:
    """Settings that an agent was tuned to, and the environments that they are for."""

    name: str
    algorithm: str
    pattern: str  # of environment ids, such as ALE/*; several are separated by spaces
    about: str  # what can be expected of it
    settings: dict[str, Any] = field(default_factory=dict)  # as in a configuration file

    def __str__(self) -> str:
        return f"recipe {self.name}: {self.about}"

    @property
    def own_env(self) -> str:
        """The id of its environment, if it is for one only; empty otherwise."""
        return "" if set(self.pattern) & set("*?[ ") else self.pattern

    def fits(self, env_id: str) -> bool:
        """Whether the recipe is for this environment, also with the module that registers it."""
        name = env_id.rpartition(":")[2]
        return any(fnmatchcase(name, pattern) for pattern in self.pattern.split())
