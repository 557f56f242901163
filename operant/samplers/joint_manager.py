"""Environments that several managers hold, seen and saved as those of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from operant.core.errors import EnvironmentFault
from operant.core.experience import Arrays, EnvStep
from operant.core.spaces import Spaces

Bounds = Sequence[tuple[int, int]]


class Parts(Protocol):
    """Where the managers are, and how to reach them."""

    bounds: Bounds  # the environments of each

    def exact(self) -> bool: ...
    def capture(self) -> list[dict[str, Any]]: ...
    def restore(self, states: list[dict[str, Any]]) -> None: ...
    def close(self) -> None: ...


class JointManager:
    """All environments of a sampler that lays them over several managers."""

    def __init__(self, parts: Parts, spaces: Spaces, frames_per_step: int) -> None:
        self.parts, self.spaces, self.frames_per_step = parts, spaces, frames_per_step
        self.num_envs = parts.bounds[-1][1]

    @property
    def exact(self) -> bool:
        """Whether `state_dict` is enough to go on bit for bit."""
        return self.parts.exact()

    def reset(self, seed: int | None = None) -> Arrays:
        """Not from here: the sampler resets them."""
        raise EnvironmentFault("these environments are the sampler's; call its obtain_samples")

    def step(self, actions: Arrays) -> EnvStep:
        """Not from here: the sampler steps them."""
        raise EnvironmentFault("these environments are the sampler's; call its obtain_samples")

    def close(self) -> None:
        """Close them all."""
        self.parts.close()

    def state_dict(self) -> dict[str, Any]:
        """As one manager of all the environments would give it, where each has its own state."""
        return joined(self.parts.capture())

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave, or what one manager of them all gave."""
        self.parts.restore(parted(state, self.parts.bounds))


def joined(states: list[dict[str, Any]]) -> dict[str, Any]:
    """States of several managers as that of one."""
    if len(states) == 1 or not states[0]["exact"]:
        return states[0]
    if "envs" in states[0]:
        return {**states[0], "envs": [env for state in states for env in state["envs"]]}
    return {"parts": states}


def parted(state: dict[str, Any], bounds: Bounds) -> list[dict[str, Any]]:
    """The inverse of `joined`."""
    if "parts" in state:
        if len(state["parts"]) != len(bounds):
            raise ValueError(f"saved of {len(state['parts'])} batches, not {len(bounds)}")
        return list(state["parts"])
    if "envs" in state:
        if len(state["envs"]) != bounds[-1][1]:
            raise ValueError(f"saved of {len(state['envs'])} environments, not {bounds[-1][1]}")
        return [{**state, "envs": state["envs"][start:stop]} for start, stop in bounds]
    return [state] * len(bounds)
