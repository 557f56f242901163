"""Checks the values that an environment returns: observations, rewards and action masks."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces as gs

from operant.core.conversion import MAX_FLOAT, quoted
from operant.core.spaces import Space, is_mask
from operant.envs.check import TOO_LARGE, in_float32
from operant.envs.findings import Findings
from operant.envs.nested_spaces import flatten, named
from operant.envs.preprocessing.action_mask import info_masks, late_mask


class ReturnedValues:
    """What came last, and what is wrong with it; `info` is that of the first reset."""

    def __init__(self, space: Space, info: dict[str, Any], found: Findings) -> None:
        self.space, self.found = space, found
        self.parts = named(space, "observation")
        self.known = {name: mask.shape for name, mask in info_masks(info).items()}
        self.last: dict[str, Any] = {}
        self.masks: dict[str, Any] = {}

    def check(self, observation: Any, info: dict[str, Any], ended: bool) -> bool:
        """Check one step; false if the values cannot be read."""
        try:
            seen = flatten(self.space, observation, "observation")
        except (KeyError, TypeError, IndexError) as error:
            self.found.fault(
                "spaces",
                f"the observation lacks a part of its space ({error!r}); return {self.space}",
            )
            return False
        self._check_alias(seen)
        fine = [self._check_part(name, seen[name], space) for name, space in self.parts.items()]
        self.last = seen
        return self._check_masks(seen, info, ended) and all(fine)

    def check_reward(self, reward: Any) -> None:
        """Check a reward."""
        try:
            number = float(np.asarray(reward).item())
        except (TypeError, ValueError):
            self.found.fault("reward", f"the reward is {reward!r}; return one number")
            return
        if not np.isfinite(number):
            self.found.fault("reward", f"the reward is {number}; return a finite number")
        elif abs(number) > MAX_FLOAT:
            self.found.fault("reward", f"the reward is {number:g}; {TOO_LARGE}")

    def _check_part(self, name: str, value: Any, space: Space) -> bool:
        """Check a part of the observation; false if it cannot be read."""
        what = f"observation {name!r}"
        try:
            x = np.asarray(value)
        except ValueError:  # of lists of different lengths
            self.found.fault("spaces", f"{what} is {quoted(value)}; return an array in {space}")
            return False
        if x.dtype.kind not in "biuf":
            kind = type(value).__name__
            self.found.fault("spaces", f"{what} is a {kind}; return numbers in {space}")
            return False
        if x.shape != tuple(space.shape or ()):
            self.found.fault(
                "spaces", f"{what} has shape {x.shape}; return {space.shape}, as its space says"
            )
            return False
        plain = isinstance(space, gs.Discrete) and x.dtype.kind in "iu"  # a Python int is fine
        if x.dtype != space.dtype and not plain:
            self.found.fault(
                "dtype", f"{what} is {x.dtype}; return {space.dtype}, as its space says"
            )
        if x.dtype.kind == "f" and not np.isfinite(x).all():
            bad = "NaN" if np.isnan(x).any() else "infinite"
            self.found.fault("finite", f"{what} is {bad}; return finite numbers")
        elif not in_float32(x):
            self.found.fault("finite", f"{what} has {np.abs(x).max():g}; {TOO_LARGE}")
        elif not _inside(x, space):
            self.found.fault(
                "bounds", f"{what} = {_short(x)} is outside of {space}; widen the space or clip"
            )
        return True

    def _check_alias(self, seen: dict[str, Any]) -> None:
        for name, x in seen.items():
            before = self.last.get(name)
            both = isinstance(x, np.ndarray) and isinstance(before, np.ndarray)
            if both and np.shares_memory(x, before):
                self.found.fault(
                    "alias",
                    f"observation {name!r} is the same array at every step, so that earlier ones "
                    f"change afterwards; return a copy",
                )

    def _check_masks(self, seen: dict[str, Any], info: dict[str, Any], ended: bool) -> bool:
        masks = info_masks(info)
        wrong = late_mask(masks, list(self.known))
        for name, mask in masks.items():
            shape = self.known.get(name, mask.shape)
            if mask.shape != shape and not wrong:
                wrong = f"info {name!r} has shape {mask.shape}, and had {shape}; keep one shape"
        self.masks = masks | {name: x for name, x in seen.items() if is_mask(name)}
        for name, mask in self.masks.items():
            if not ended and not np.any(mask) and not wrong:
                wrong = f"{name!r} allows no action; allow at least one, or end the episode"
        lost = [name for name in self.known if name not in masks]
        if lost and not ended and not wrong:
            wrong = f"info lacks {lost[0]!r}, which reset gave; return it in every step"
        if wrong:
            self.found.fault("mask", wrong)
        return not wrong


def _inside(x: Any, space: Space) -> bool:
    """Whether numbers of the right shape are within a space, whatever their type."""
    if isinstance(space, gs.Box):
        return bool((x >= space.low).all() and (x <= space.high).all())
    if isinstance(space, gs.Discrete):
        return bool(space.start <= x < space.start + space.n)
    if isinstance(space, gs.MultiDiscrete):
        return bool((x >= space.start).all() and (x < space.start + space.nvec).all())
    return bool(np.isin(x, (0, 1)).all())


def _short(x: Any) -> str:
    """An array in one short line."""
    text = " ".join(np.array2string(x, threshold=8, precision=4).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
