"""One environment: observations and actions are dicts by name, as agents see and choose them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces as gs

from operant.core.conversion import quoted
from operant.core.errors import described
from operant.core.spaces import MASK, Space, Spaces, is_mask
from operant.envs.bounds import BoundsCheck
from operant.envs.check import Guard
from operant.envs.nested_spaces import named
from operant.envs.preprocessing.action import ActionPreprocessor
from operant.envs.preprocessing.action_mask import check_masks, info_masks, late_mask
from operant.envs.preprocessing.observation import Cast, ObsPreprocessor, Operation, standard
from operant.envs.step_api import as_flag, wrong_reset, wrong_step

if TYPE_CHECKING:  # this module imports torch, which environment workers do without
    from operant.core.experience import Arrays

SUCCESS = "is_success"  # in the info of an episode's last step
Step = tuple["Arrays", float, bool, bool, dict[str, Any]]


class Environment(ABC):
    """Checks and preprocesses the steps of a simulator; a subclass resets and steps it.

    `info` is that of a first reset: an action mask in it becomes an observation. `stacked` says
    that an observation is a stack of the last frames.
    """

    frames_per_step = 1
    horizon: int | None = None  # steps after which an episode is truncated, if there is a limit

    def __init__(
        self,
        env_id: str,
        spaces: tuple[Space, Space],
        index: int = 0,
        operations: Sequence[Operation] = (),
        info: dict[str, Any] | None = None,
        stacked: bool = False,
    ) -> None:
        self.observation_space, self.action_space = spaces
        self.guard = Guard(env_id, self.observation_space, index=index)
        self._check_bounds = BoundsCheck(env_id, self.guard.spaces, index)
        self.action_preprocessor = ActionPreprocessor(self.action_space)
        self.obs_preprocessor_cpu, self.spaces = record_spaces(
            self.observation_space,
            self.action_preprocessor,
            operations,
            info or {},
            stacked=stacked,
        )
        self._masks = [name for name in self.spaces.observation if is_mask(name)]

    @abstractmethod
    def _reset(self, seed: int | None) -> tuple[Any, dict[str, Any]]: ...

    @abstractmethod
    def _step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]: ...

    @abstractmethod
    def snapshot(self) -> dict[str, Any]:
        """The state of the simulator as arrays and plain values."""

    @abstractmethod
    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot of an environment of the same class."""

    def reset(self, seed: int | None = None) -> Arrays:
        """Begin an episode; an error of the simulator names the environment and the step."""
        result = self._call(self._reset, seed)
        if wrong := wrong_reset(result):
            raise self.guard.fault(wrong)
        observation, info = result
        return self._observe(observation, info, ended=False)

    def step(self, action: Arrays) -> Step:
        """Take one action; the simulator is not reset when an episode ends."""
        self.guard.steps += 1
        taken = self.action_preprocessor(action)
        result = self._call(self._step, taken)
        if wrong := wrong_step(result):
            raise self.guard.fault(wrong)
        observation, reward, terminated, truncated, info = result
        ended = bool(terminated or truncated)
        if ended and SUCCESS in info:
            info = self._with_flag(info)
        arrays = self._observe(observation, info, ended)
        return arrays, self.guard.reward(reward), bool(terminated), bool(truncated), info

    @abstractmethod
    def render(self) -> Any:
        """A frame `[H, W, 3]` if the environment was made to render, else None."""

    @abstractmethod
    def close(self) -> None:
        """Close the simulator; a second call does nothing."""

    def _call(self, call: Callable[[Any], Any], argument: Any) -> Any:
        try:
            return call(argument)
        except (Exception, SystemExit) as error:  # an environment's exit would end the run unsaid
            doing = call.__name__.strip("_")
            raise self.guard.fault(f"{doing} raised {described(error)}") from error

    def _with_flag(self, info: dict[str, Any]) -> dict[str, Any]:
        """The info with success as True or False; without it if it is None."""
        success, others = info[SUCCESS], {k: x for k, x in info.items() if k != SUCCESS}
        if success is None:
            return others
        flag = as_flag(success)
        if flag is None:
            raise self.guard.fault(f"info {SUCCESS!r} is {quoted(success)}; expected True or False")
        return {**others, SUCCESS: flag}

    def _observe(self, value: Any, info: dict[str, Any], ended: bool) -> Arrays:
        observation = self.guard.observation(value)
        self._check_bounds(observation, self.guard.steps)
        if self._masks or MASK in info:
            masks = info_masks(info)
            if late := late_mask(masks, self._masks):
                raise self.guard.fault(late)
            observation |= masks
            missing = [name for name in self._masks if name not in observation]
            if missing:
                raise self.guard.fault(
                    f"info lacks {missing[0]!r}, which it had at the first reset"
                )
        observation = self.obs_preprocessor_cpu(observation)
        for name in self._masks:
            if not observation[name].any():
                if not ended:
                    raise self.guard.fault(f"{name!r} allows no action; expected at least one")
                # No action is taken after the end, and an empty mask would make the policy NaN.
                observation[name] = np.ones_like(observation[name])
        return observation


def record_spaces(
    observation_space: Space,
    action: ActionPreprocessor,
    operations: Sequence[Operation],
    info: dict[str, Any],
    lead: int = 0,
    stacked: bool = False,
) -> tuple[ObsPreprocessor, Spaces]:
    """The preprocessor of these observations, and the spaces that agents get.

    `operations` come first and see the environment's own observations; arrays in `info` have
    `lead` leading dimensions.
    """
    from_info = {
        name: Cast(name, "bool").space(gs.MultiBinary(mask.shape[lead:]))
        for name, mask in info_masks(info).items()
    }
    raw: dict[str, Space] = {**named(observation_space, "observation"), **from_info}
    first = ObsPreprocessor(operations)
    frames = ("observation",) if stacked else ()
    preprocessor = ObsPreprocessor([*operations, *standard(first.space(raw), frames)])
    spaces = Spaces(preprocessor.space(raw), action.spaces)
    if stacked and isinstance(observation_space, gs.Box):
        # A cast keeps frames apart; other operations may mix them.
        touched = {o.field for o in preprocessor.operations if not isinstance(o, Cast)}
        spaces = replace(spaces, stacked=() if "observation" in touched else ("observation",))
    check_masks(spaces.observation, spaces.action)
    return preprocessor, spaces
