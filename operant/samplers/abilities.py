"""What only some managers can do, asked for by `isinstance`.

These protocols have no other members: before Python 3.12, `isinstance` reads every member of a
protocol, and reading `exact` makes environments and tries to resume them.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from operant.core.experience import Arrays, EnvStep
from operant.core.tree import Array


@runtime_checkable
class PausableManager(Protocol):
    """Can leave some environments as they are; their rows are then not valid."""

    def set_active(self, active: Array) -> None: ...  # bool [B]: which take the next steps


@runtime_checkable
class SplitStepManager(Protocol):
    """Its step has a beginning and an end, between which the caller can do something else."""

    def send(self, actions: Arrays) -> None: ...
    def receive(self) -> EnvStep: ...


@runtime_checkable
class PlacedManager(Protocol):
    """Knows its place in a larger batch: environment i is seeded with `seed + first + i`."""

    first: int
