"""Masks over discrete actions, from the observation or from the info of an environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from operant.core.errors import UsageError
from operant.core.spaces import MASK, Space, choices, is_mask

if TYPE_CHECKING:  # these modules import torch, which environment workers do without
    from operant.core.experience import Arrays
    from operant.core.tree import Array


def check_masks(observation: dict[str, Space], action: dict[str, Space]) -> None:
    """Raise an error for masks that belong to no discrete action, or are not of its size."""
    for name in filter(is_mask, observation):
        target = name[len(MASK) + 1 :] or next(iter(action))
        if target not in action or (name == MASK and len(action) > 1):
            wanted = ", ".join(f"{MASK}.{part}" for part in action)
            raise UsageError(f"observation {name!r} masks no action; expected {wanted}")
        entries, shape = sum(choices(action[target])), tuple(observation[name].shape or ())
        if not entries:
            raise UsageError(
                f"observation {name!r}: action {target!r} is {action[target]}, and only discrete "
                f"actions can be masked; take the mask out of the observation"
            )
        if shape != (entries,):
            raise UsageError(
                f"observation {name!r} has shape {shape}; expected ({entries},), "
                f"one entry for each choice of {target!r}, concatenated"
            )


def info_masks(info: dict[str, Any]) -> Arrays:
    """Masks over actions that an environment gives in its info."""
    value = info.get(MASK)
    if value is None:
        return {}
    if isinstance(value, dict):
        return {f"{MASK}.{name}": _concatenated(part) for name, part in value.items()}
    return {MASK: _concatenated(value)}


def late_mask(masks: Arrays, known: Sequence[str]) -> str:
    """What is wrong with a mask that the first reset did not have; empty if there is none."""
    late = next((name for name in masks if name not in known), "")
    return late and (
        f"info has {late!r}, which it lacked at the first reset, so that agents cannot know of "
        f"it; return it in `reset` too, with True for every action that is allowed"
    )


def allowed(spaces: dict[str, Space], observation: Arrays, actions: Arrays) -> Arrays:
    """`actions`, with the next choice that is allowed in place of each one that a mask forbids."""
    taken = dict(actions)
    for name, space in spaces.items():
        mask = observation.get(f"{MASK}.{name}", observation.get(MASK))
        if mask is not None and choices(space):
            taken[name] = _allowed(choices(space), mask, actions[name])
    return taken


def _allowed(sizes: list[int], mask: Array, action: Array) -> Array:
    chosen = np.reshape(action, (*mask.shape[:-1], len(sizes)))
    parts = np.split(mask, np.cumsum(sizes)[:-1], axis=-1)
    moved = [_next_allowed(chosen[..., i], part) for i, part in enumerate(parts)]
    return np.stack(moved, axis=-1).reshape(np.shape(action))


def _next_allowed(choice: Array, mask: Array) -> Array:
    count = mask.shape[-1]
    following = (choice[..., None] + np.arange(count)) % count
    ahead = np.take_along_axis(mask, following, axis=-1).argmax(axis=-1)
    next_one: Array = (choice + ahead) % count
    return next_one


def _concatenated(mask: Any) -> Array:
    parts = mask if isinstance(mask, tuple) else (mask,)
    return np.concatenate([np.asarray(part).astype(bool) for part in parts], axis=-1)
