"""Frameworks whose learning is spread over processes: they come with the containers."""

from __future__ import annotations

from typing import Any

from operant.core.errors import UsageError
from operant.frameworks.actor_critic import A2C
from operant.frameworks.deterministic_policy import DDPGPer
from operant.frameworks.value_based import DQNPer


def _refuse(name: str, instead: str) -> None:
    raise UsageError(
        f"{name} learns in several processes, which needs a container that is not there yet; use "
        f"{instead} of operant.frameworks in one process, or `operant train` with samplers"
    )


class A3C(A2C):
    """A2C whose gradients come from several processes; not there yet."""

    def __init__(self, *_: Any, **__: Any) -> None:
        _refuse("A3C", "A2C")


class DQNApex(DQNPer):
    """DQNPer whose steps come from several processes; not there yet."""

    def __init__(self, *_: Any, **__: Any) -> None:
        _refuse("DQNApex", "DQNPer")


class DDPGApex(DDPGPer):
    """DDPGPer whose steps come from several processes; not there yet."""

    def __init__(self, *_: Any, **__: Any) -> None:
        _refuse("DDPGApex", "DDPGPer")
