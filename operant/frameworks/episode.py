"""Episodes of a user's own loop, checked whole, as chunks of the one record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from operant.core import tree
from operant.core.errors import UsageError
from operant.core.experience import Experience, HiddenState, Tensors
from operant.frameworks.arguments import STATE

MAJOR = ("state", "action", "next_state")  # dicts of tensors `[1, ...]`
REQUIRED = (*MAJOR, "reward", "terminal")


class Transition:
    """One step: `state`, `action` and `next_state` are dicts of tensors `[1, ...]`.

    `reward` is a number and `terminal` True or False, or tensors of one element; any other
    attribute is kept beside them.
    """

    def __init__(
        self,
        state: Mapping[str, Tensor],
        action: Mapping[str, Tensor],
        next_state: Mapping[str, Tensor],
        reward: float | Tensor,
        terminal: bool | Tensor,
        **others: Any,
    ) -> None:
        self.state, self.action, self.next_state = dict(state), dict(action), dict(next_state)
        self.reward, self.terminal = reward, terminal
        self.__dict__.update(others)


Step = Transition | Mapping[str, Any]


class Episode(NamedTuple):
    """An episode as a chunk `[T, 1]`, and the attributes of its steps that are no numbers."""

    chunk: Experience
    objects: dict[str, list[Any]]


def episode_of(steps: Sequence[Step]) -> Episode:
    """Check every step, then make one record of them; a fault names the step and the key."""
    if not steps:
        raise UsageError("the episode has no steps; expected at least one transition")
    found = [_attributes(step, t) for t, step in enumerate(steps)]
    for t, step in enumerate(found):
        _check_step(step, t, found[0])
    state, after = (_stacked(found, key, STATE) for key in ("state", "next_state"))
    terminal = torch.tensor([[_flag(step, t)] for t, step in enumerate(found)])
    last = torch.zeros_like(terminal)
    last[-1] = True
    # Where a step did not lead to what the next one saw, an episode ends all the same.
    broken = last | _differ(state, after) | terminal
    memo, objects = _others(found)
    return Episode(_record(state, after, found, terminal, broken, memo), objects)


def _record(
    state: Tensors,
    after: Tensors,
    steps: list[dict[str, Any]],
    terminal: Tensor,
    broken: Tensor,
    memo: Tensors,
) -> Experience:
    rows = {name: torch.cat([x, after[name][-1:]]) for name, x in state.items()}
    first = torch.cat([torch.ones(1, 1, dtype=torch.bool), broken])
    reward = torch.tensor([[_number(step["reward"])] for step in steps], dtype=torch.float32)
    return Experience(
        observation=rows,
        hidden_state=HiddenState(),
        first=first,
        action=_stacked(steps, "action"),
        memo=memo,
        reward=reward,
        terminated=terminal,
        truncated=broken & ~terminal,
        valid=torch.ones_like(terminal),
        final_observation=after,
        replaced=broken,
    )


def piece(chunk: Experience, start: int, stop: int) -> Experience:
    """Some steps of a chunk, as a chunk."""
    steps = slice(start, min(stop, len(chunk.reward)))
    seen = slice(start, steps.stop + 1)
    rows = {"observation", "first"}
    return Experience(**{k: tree.index(x, seen if k in rows else steps) for k, x in chunk.items()})


def joined(chunks: Sequence[Experience]) -> Experience:
    """Episodes one after another as one chunk `[T, 1]`, each with an end of its own."""
    whole = chunks[-1]
    parts = [tree.index(dict(c.observation), slice(0, len(c.reward))) for c in chunks[:-1]]
    firsts = [c.first[: len(c.reward)] for c in chunks[:-1]]
    seen = {k: torch.cat([*(p[k] for p in parts), x]) for k, x in whole.observation.items()}
    fields = ("action", "memo", "reward", "terminated", "truncated", "valid")
    rest = {
        field: tree.map(lambda *xs: torch.cat(xs), *(getattr(c, field) for c in chunks))
        for field in (*fields, "final_observation", "replaced")
    }
    first = torch.cat([*firsts, whole.first])
    return Experience(observation=seen, hidden_state=HiddenState(), first=first, **rest)


def _attributes(step: Step, t: int) -> dict[str, Any]:
    found = dict(step) if isinstance(step, Mapping) else vars(step)
    lacking = [key for key in REQUIRED if key not in found]
    if lacking:
        raise UsageError(f"step {t}: lacks {', '.join(map(repr, lacking))}")
    return found


def _check_step(step: dict[str, Any], t: int, like: dict[str, Any]) -> None:
    if step.keys() != like.keys():
        raise UsageError(f"step {t}: has {sorted(step)}, and step 0 has {sorted(like)}")
    for key in MAJOR:
        if not isinstance(step[key], Mapping) or step[key].keys() != like[key].keys():
            raise UsageError(f"step {t}: {key} = {step[key]!r}; expected a dict like step 0's")
        for name, x in step[key].items():
            _check_tensor(f"step {t}: {key}[{name!r}]", x, like[key][name])
    if not np.isfinite(_number(step["reward"])):
        raise UsageError(f"step {t}: reward is {_number(step['reward'])}; expected a finite number")
    _flag(step, t)


def _check_tensor(where: str, x: Any, like: Any) -> None:
    if not isinstance(x, Tensor) or not x.dim() or len(x) != 1:
        shape = tuple(x.shape) if isinstance(x, Tensor) else type(x).__name__
        raise UsageError(f"{where} is {shape}; expected a tensor of one row, [1, ...]")
    if x.shape != like.shape or x.dtype != like.dtype:
        raise UsageError(
            f"{where} is {x.dtype} {tuple(x.shape)}, and step 0's {like.dtype} {tuple(like.shape)}"
        )
    if x.is_floating_point() and not bool(x.isfinite().all()):
        raise UsageError(f"{where} holds NaN or infinity; expected finite numbers")


def _number(x: Any) -> float:
    try:
        return float(x.detach() if isinstance(x, Tensor) else x)
    except (TypeError, ValueError, RuntimeError):
        raise UsageError(f"reward = {x!r}: expected one number") from None


def _flag(step: dict[str, Any], t: int) -> bool:
    x = step["terminal"]
    arrays = Tensor | np.ndarray | np.generic
    one = x.item() if isinstance(x, arrays) and torch.as_tensor(x).numel() == 1 else x
    if not isinstance(one, bool):
        raise UsageError(f"step {t}: terminal = {x!r}; expected True or False")
    return one


def _stacked(steps: list[dict[str, Any]], key: str, prefix: str = "") -> Tensors:
    """`[T, 1, ...]` of what each step has under a name."""
    return {
        prefix + name: torch.stack([step[key][name].detach().cpu() for step in steps])
        for name in steps[0][key]
    }


def _differ(state: Tensors, after: Tensors) -> Tensor:
    """Where what a step led to `[T, 1]` is not what the next one saw; not at the last step."""
    steps = len(next(iter(state.values())))
    found = torch.zeros(steps, 1, dtype=torch.bool)
    for name, x in state.items():
        found[:-1, 0] |= (x[1:] != after[name][:-1]).flatten(1).any(1)
    return found


def _others(steps: list[dict[str, Any]]) -> tuple[Tensors, dict[str, list[Any]]]:
    """Attributes beside the required ones: numbers `[T, 1, ...]`, and other objects as lists."""
    numbers: Tensors = {}
    objects: dict[str, list[Any]] = {}
    for name in steps[0].keys() - set(REQUIRED):
        values = [step[name] for step in steps]
        rows = [_row(x) for x in values]
        same = rows[0] is not None and all(x is not None and x.shape == rows[0].shape for x in rows)
        if same:
            numbers[name] = torch.stack([x for x in rows if x is not None])
        else:
            objects[name] = values
    return numbers, objects


def _row(x: Any) -> Tensor | None:
    """A number as `[1]`, a tensor of one row as it is; None for any other object."""
    if not isinstance(x, Tensor | int | float):
        return None
    row = torch.as_tensor(x).detach().cpu()
    if row.numel() == 1:
        return row.reshape(1)
    return row if row.dim() and len(row) == 1 else None
