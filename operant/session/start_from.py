"""A run that starts from the weights of another one.

Taken over are networks, target networks, statistics of observations, and a temperature that is
learned. Not so the optimizer, whose moments are those of another objective, counts, by which
schedules go, random generators, and the memory, which may hold what another task showed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from operant.agents.agent import AgentBase
from operant.config import load_yaml
from operant.core import tree
from operant.core.errors import UsageError
from operant.core.protocols import Agent
from operant.core.state import restore, state_of
from operant.session.checkpoint.checkpoint import Checkpoint
from operant.session.run_settings import split_algorithm

SHOWN = 3  # tensors that an error names


def check_kind(config: Path, algorithm: str) -> None:
    """Refuse the weights of another kind of agent; imports nothing that the other run names."""
    other, _ = split_algorithm(load_yaml(config), str(config))
    if other != algorithm:
        raise UsageError(
            f"from = {str(config.parent)!r}: is of agent {other}, and its weights mean something "
            f"else to {algorithm}; expected a run of {algorithm}"
        )


def take_weights(agent: Agent, saved: Checkpoint, run: Path) -> dict[str, Any]:
    """Fill an agent's networks from a checkpoint of another run; where they come from."""
    if not isinstance(agent, AgentBase):
        raise UsageError(
            f"from = {str(run)!r}: {type(agent).__name__} does not say which parts of it are "
            f"weights; let it extend operant.agents.AgentBase"
        )
    names = agent.weights()
    given = {name: saved.state["container"]["agent"].get(name) for name in names}
    if differing := _differences(state_of(agent, *names), given):
        more = len(differing) - SHOWN
        rest = f", and {more} more" if more > 0 else ""
        raise UsageError(
            f"from = {str(run)!r}: its weights do not fit: {'; '.join(differing[:SHOWN])}{rest}; "
            f"expected an environment with the same spaces, and the same network settings"
        )
    restore(agent, given, *names)
    return {"run": str(run), "step": saved.state["step"]}


def _differences(here: dict[str, Any], there: dict[str, Any]) -> list[str]:
    """Tensors that only one of two states has, or that have other shapes in them."""
    ours, theirs = ({path: _shape(x) for path, x in tree.leaves(s)} for s in (here, there))
    found = [
        f"{path} is {theirs[path]} there and {shape} here"
        for path, shape in ours.items()
        if path in theirs and theirs[path] != shape
    ]
    found += [f"{path} {shape} is only here" for path, shape in ours.items() if path not in theirs]
    return found + [f"{path} {x} is only there" for path, x in theirs.items() if path not in ours]


def _shape(x: Any) -> tuple[int, ...]:
    return tuple(getattr(x, "shape", ()))
