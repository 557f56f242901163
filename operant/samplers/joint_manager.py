"""Environments that several managers hold, seen and saved as those of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from operant.core.errors import EnvironmentFault
from operant.core.experience import Arrays, EnvStep
from operant.core.spaces import Spaces

Bounds = Sequence[tuple[int, int]]


class ManagerGroup(Protocol):
    """Several managers, in this process or in others."""

    bounds: Bounds  # first and last environment, exclusive, of each

    def count_restarts(self) -> int: ...
    def all_exact(self) -> bool: ...
    def save_each(self) -> list[dict[str, Any]]: ...
    def load_each(self, states: list[dict[str, Any]]) -> None: ...
    def close(self) -> None: ...


class JointManager:
    """All environments of a sampler that distributes them over several managers."""

    def __init__(self, group: ManagerGroup, spaces: Spaces, frames_per_step: int) -> None:
        self.group, self.spaces, self.frames_per_step = group, spaces, frames_per_step
        self.num_envs = group.bounds[-1][1]

    @property
    def exact(self) -> bool:
        """Whether `state_dict` is enough to go on bit for bit."""
        return self.group.all_exact()

    @property
    def restarts(self) -> int:
        """Worker processes replaced so far."""
        return self.group.count_restarts()

    def reset(self, seed: int | None = None) -> Arrays:
        """An error: only the sampler resets them."""
        raise EnvironmentFault("reset: these environments are the sampler's; use obtain_samples")

    def step(self, actions: Arrays) -> EnvStep:
        """An error: only the sampler steps them."""
        raise EnvironmentFault("step: these environments are the sampler's; use obtain_samples")

    def close(self) -> None:
        """Close them all."""
        self.group.close()

    def state_dict(self) -> dict[str, Any]:
        """As one manager of all the environments would give it, where each has its own state."""
        return join_states(self.group.save_each())

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave, or what one manager of them all gave."""
        self.group.load_each(split_state(state, self.group.bounds))


def join_states(states: list[dict[str, Any]]) -> dict[str, Any]:
    """States of several managers as that of one."""
    inexact = [state for state in states if not state["exact"]]
    if len(states) == 1 or inexact:  # of one that cannot be resumed exactly, none is
        return inexact[0] if inexact else states[0]
    if "envs" in states[0]:
        return {**states[0], "envs": [env for state in states for env in state["envs"]]}
    return {"parts": states}


def split_state(state: dict[str, Any], bounds: Bounds) -> list[dict[str, Any]]:
    """The inverse of `join_states`."""
    if "parts" in state:
        if len(state["parts"]) != len(bounds):
            saved = len(state["parts"])
            raise ValueError(f"the state is of {saved} vector environments; expected {len(bounds)}")
        return list(state["parts"])
    if "envs" in state:
        if len(state["envs"]) != bounds[-1][1]:
            saved = len(state["envs"])
            raise ValueError(f"the state is of {saved} environments; expected {bounds[-1][1]}")
        return [{**state, "envs": state["envs"][start:stop]} for start, stop in bounds]
    return [state] * len(bounds)
