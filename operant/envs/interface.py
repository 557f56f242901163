"""What an environment shows and takes, and what preprocessing makes of it, as plain JSON values.

Saved with a run, it lets a trained policy act where the environment cannot be made.
"""

from __future__ import annotations

import dataclasses
import math
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from gymnasium import spaces as gs

from operant.core.errors import UsageError
from operant.core.spaces import Space, Spaces, is_mask
from operant.envs.nested_spaces import named
from operant.envs.preprocessing.action import ActionPreprocessor
from operant.envs.preprocessing.frame_stack import LastFrame, MergeFrames
from operant.envs.preprocessing.observation import (
    Cast,
    ChannelFirst,
    Hide,
    ObsPreprocessor,
    OneHot,
    Operation,
)

if TYPE_CHECKING:  # this module imports torch, which environment workers do without
    from operant.core.tree import Array
    from operant.envs.check import Guard

OPERATIONS: dict[str, Any] = {
    kind.__name__: kind for kind in (Cast, ChannelFirst, Hide, LastFrame, MergeFrames, OneHot)
}


class Described(Protocol):
    """An environment, or a vector environment's manager, with its own spaces and the agents'."""

    guard: Guard
    action_preprocessor: ActionPreprocessor
    obs_preprocessor_cpu: ObsPreprocessor
    spaces: Spaces


@dataclass(frozen=True)
class Interface:
    """The environment's own spaces, masks that come in its info, and the way to the agent's."""

    observation: Space
    action: Space
    masks: dict[str, int]  # by name: how many choices it has an entry for
    operations: tuple[Operation, ...]  # on observations, in order
    stacked: tuple[str, ...] = ()  # observations that are the last frames
    agents: tuple[str, ...] = ()  # of several agents, their names

    @classmethod
    def of(cls, env: Described) -> Interface:
        """The interface of an environment that was made."""
        raw, spaces = env.guard.space, env.spaces
        own = named(raw, "observation")
        masks = {
            name: int((space.shape or (0,))[0])
            for name, space in spaces.observation.items()
            if is_mask(name) and name not in own
        }
        steps = env.obs_preprocessor_cpu.operations
        return cls(raw, env.action_preprocessor.target, masks, steps, spaces.stacked, spaces.agents)

    def spaces(self) -> Spaces:
        """The spaces that agents get."""
        from_info: dict[str, Space] = {name: gs.MultiBinary(n) for name, n in self.masks.items()}
        raw = {**named(self.observation, "observation"), **from_info}
        seen = ObsPreprocessor(self.operations).space(raw)
        return Spaces(seen, ActionPreprocessor(self.action).spaces, self.stacked, self.agents)

    def to_json(self) -> dict[str, Any]:
        """Plain values, from which `from_json` makes an equal interface."""
        return {
            "observation": space_to_json(self.observation),
            "action": space_to_json(self.action),
            "masks": self.masks,
            "operations": [_operation_to_json(x) for x in self.operations],
            "stacked": list(self.stacked),
            **({"agents": list(self.agents)} if self.agents else {}),
        }

    @classmethod
    def from_json(cls, tree: Mapping[str, Any]) -> Interface:
        """The interface that `to_json` described."""
        return cls(
            space_from_json(tree["observation"]),
            space_from_json(tree["action"]),
            {str(name): int(n) for name, n in tree["masks"].items()},
            tuple(_operation_from_json(x) for x in tree["operations"]),
            tuple(tree["stacked"]),
            tuple(tree.get("agents", ())),
        )


def space_to_json(space: Space) -> dict[str, Any]:
    """A space as one key, its kind, with what it is made from."""
    if isinstance(space, gs.Dict):  # pairs, since their order is that of a network's inputs
        return {"Dict": [[key, space_to_json(part)] for key, part in space.spaces.items()]}
    if isinstance(space, gs.Tuple):
        return {"Tuple": [space_to_json(part) for part in space.spaces]}
    made: dict[str, Any] = {"shape": list(space.shape or ()), "dtype": str(space.dtype)}
    if isinstance(space, gs.Box):
        made |= {"low": _numbers(space.low), "high": _numbers(space.high)}
    elif isinstance(space, gs.Discrete):
        made |= {"n": int(space.n), "start": int(space.start)}
    elif isinstance(space, gs.MultiDiscrete):
        made |= {"nvec": _numbers(space.nvec), "start": _numbers(space.start)}
    elif isinstance(space, gs.MultiBinary):
        made |= {"n": space.n if isinstance(space.n, int) else list(space.shape)}
    else:
        raise UsageError(f"space {space}: has no fixed shape, so it cannot be saved with a run")
    return {type(space).__name__: made}


def space_from_json(tree: Mapping[str, Any]) -> Space:
    """The space that `space_to_json` described."""
    ((kind, made),) = tree.items()
    makers: dict[str, Callable[[Any], Space]] = {
        "Dict": lambda parts: gs.Dict(OrderedDict((k, space_from_json(x)) for k, x in parts)),
        "Tuple": lambda parts: gs.Tuple([space_from_json(x) for x in parts]),
        "Box": _box,
        "Discrete": lambda x: gs.Discrete(x["n"], start=x["start"], dtype=_dtype(x)),
        "MultiDiscrete": lambda x: gs.MultiDiscrete(
            _array(x["nvec"], x), dtype=_dtype(x), start=_array(x["start"], x)
        ),
        "MultiBinary": lambda x: gs.MultiBinary(x["n"]),
    }
    return makers[kind](made)


def _box(made: Mapping[str, Any]) -> Space:
    low, high = _array(made["low"], made), _array(made["high"], made)
    return gs.Box(low, high, tuple(made["shape"]), dtype=_dtype(made))


def _dtype(made: Mapping[str, Any]) -> Any:
    return np.dtype(made["dtype"]).type


def _numbers(x: Array) -> Any:
    """One number where all are the same, as in images, else all of them in C order."""
    values = [_number(value) for value in x.ravel().tolist()]
    same = len(values) > 0 and all(value == values[0] for value in values)
    return values[0] if same else values


def _number(value: float) -> float | str:
    """JSON has no infinity; a float32 is a float64, whose text is read as the same number."""
    return value if math.isfinite(value) else repr(value)


def _array(numbers: Any, made: Mapping[str, Any]) -> Array:
    dtype, shape = np.dtype(made["dtype"]), tuple(made["shape"])
    if not isinstance(numbers, list):
        return np.full(shape, _plain(numbers), dtype)
    return np.array([_plain(x) for x in numbers], dtype).reshape(shape)


def _plain(number: Any) -> Any:
    return float(number) if isinstance(number, str) else number


def _operation_to_json(operation: Any) -> dict[str, Any]:
    name = type(operation).__name__
    if OPERATIONS.get(name) is not type(operation):
        raise UsageError(
            f"operation {operation}: cannot be saved; expected {', '.join(OPERATIONS)}"
        )
    return {name: dataclasses.asdict(operation)}


def _operation_from_json(tree: Mapping[str, Any]) -> Operation:
    ((name, made),) = tree.items()
    fields = {key: tuple(x) if isinstance(x, list) else x for key, x in made.items()}
    operation: Operation = OPERATIONS[name](**fields)
    return operation
