"""A trained policy for other programs: observations of the environment in, its own actions out."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium import spaces as gs
from torch import Tensor

from operant.core import tree
from operant.core.errors import EnvironmentFault, UsageError
from operant.core.experience import Arrays, HiddenState
from operant.core.protocols import Agent
from operant.core.spaces import MASK, Shape, Space
from operant.core.tree import Array
from operant.envs.check import Guard
from operant.envs.interface import Interface
from operant.envs.nested_spaces import flatten, named
from operant.envs.preprocessing.action import ActionCheck, ActionPreprocessor
from operant.envs.preprocessing.action_mask import check_masks, info_masks
from operant.envs.preprocessing.observation import ObsPreprocessor

State = dict[str, Array]  # recurrent state `[B, ...]` by name


class Policy:
    """Chooses actions as evaluation does: `action = policy(observation)`.

    An observation is as the environment's `reset` and `step` return it, after its own wrappers,
    such as those of Atari; a batch is as its vector form returns it. Scaling, normalisation and
    recurrent state are inside; call `reset` where an episode ends.
    """

    def __init__(self, agent: Agent, interface: Interface) -> None:
        self.agent, self.interface, self.spaces = agent, interface, interface.spaces()
        self.observation_space, self.action_space = interface.observation, interface.action
        self._parts = named(interface.observation, "observation")
        self._preprocess = ObsPreprocessor(interface.operations)
        self._to_env = ActionPreprocessor(interface.action)
        self._check = ActionCheck(self.spaces.action)
        actions = self.spaces.action.items()
        self._binary = [name for name, space in actions if isinstance(space, gs.MultiBinary)]
        self._state: HiddenState | None = None  # None: fresh

    def __call__(self, observation: Any, *, action_mask: Any = None, explore: bool = False) -> Any:
        """The action for one observation, or the actions for a batch of them.

        `action_mask` is what the environment gives as `info["action_mask"]`.
        """
        action, self._state = self._act(observation, self._state, action_mask, explore)
        return action

    def reset(self, done: Any = None) -> None:
        """Forget what was seen: everywhere, or in the rows of a batch where `done` is true."""
        if done is None or not self._state:
            self._state = None
        else:
            self._state = self._state.reset(_rows(done, "done", _size(self._state)))

    def predict(
        self,
        observation: Any,
        state: State | None = None,
        episode_start: Any = None,
        deterministic: bool = True,
        action_mask: Any = None,
    ) -> tuple[Any, State | None]:
        """Stable-Baselines3's form: the action, and the recurrent state to pass with the next call.

        State None begins new episodes, as `episode_start` does where it is true. The state is None
        for a policy without memory.
        """
        given = None if state is None else HiddenState(tree.tensors(state))
        if given and episode_start is not None:
            given = given.reset(_rows(episode_start, "episode_start", _size(given)))
        action, after = self._act(observation, given, action_mask, not deterministic)
        return action, {name: x.cpu().numpy() for name, x in after.items()} or None

    def _act(
        self, observation: Any, state: HiddenState | None, mask: Any, explore: bool
    ) -> tuple[Any, HiddenState]:
        lead = self._lead(observation)
        count = lead[0] if lead else 1
        arrays = self._seen(observation, lead) | self._masks(mask, lead)
        rows = {name: _plain(x if lead else x[None]) for name, x in arrays.items()}
        state = state or self.agent.initial_state(count)
        if state and _size(state) != count:
            raise UsageError(
                f"observation: {count} of them, and the recurrent state is of {_size(state)} "
                f"episodes; call reset() before the number changes"
            )
        action, memo = self.agent.act(tree.tensors(rows), state, explore=explore)
        chosen = {name: x.numpy() for name, x in action.items()}
        self._check(chosen, (count,))
        for name in self._binary:
            chosen[name] = chosen[name].astype(np.int8)  # which a batch of them must be
        own = chosen if lead else {name: x[0] for name, x in chosen.items()}
        return self._to_env(own), memo.hidden_state

    def _lead(self, observation: Any) -> Shape:
        """Empty for one observation, `(B,)` for a batch, told apart by their shapes."""
        try:
            found = flatten(self.observation_space, observation, "observation")
        except (KeyError, TypeError, IndexError) as error:
            raise UsageError(
                f"observation: lacks a part ({error!r}); expected {', '.join(self._parts)}"
            ) from None
        leads: set[Shape] = set()
        for name, space in self._parts.items():
            shape, own = np.shape(found[name]), tuple(space.shape or ())
            extra = len(shape) - len(own)
            if extra not in (0, 1) or shape[extra:] != own or 0 in shape[:extra]:
                raise UsageError(
                    f"observation {name!r} has shape {shape}; expected {own} for one, or "
                    f"{('B', *own)} for a batch".replace("'B'", "B")
                )
            leads.add(shape[:extra])
        if len(leads) > 1:
            raise UsageError(f"observation: its parts are batches of unequal size, {sorted(leads)}")
        return leads.pop()

    def _seen(self, observation: Any, lead: Shape) -> Arrays:
        guard = Guard("policy", self.observation_space, lead)
        try:
            return self._preprocess_own(dict(guard.observation(observation)))
        except EnvironmentFault as error:  # here it was the caller, not an environment
            raise UsageError(str(error).partition(": ")[2]) from None

    def _preprocess_own(self, arrays: Arrays) -> Arrays:
        """The agent's observations, without masks that come beside them."""
        for operation in self._preprocess.operations:
            if operation.field in arrays:
                arrays[operation.field] = operation(arrays[operation.field])
        return arrays

    def _masks(self, mask: Any, lead: Shape) -> Arrays:
        """Masks that were given beside the observation, checked."""
        if mask is None:
            missing = next(iter(self.interface.masks), None)
            if missing is None:
                return {}
            raise UsageError(
                f"action_mask is missing: the environment gives {missing!r} in its info; call "
                f'policy(observation, action_mask=info["{MASK}"])'
            )
        masks = info_masks({MASK: mask})
        spaces = {name: _mask_space(x, len(lead)) for name, x in masks.items()}
        check_masks(spaces, self.spaces.action)
        for name, x in masks.items():
            if x.shape[:-1] != lead or not x.any(axis=-1).all():
                raise UsageError(
                    f"{name} has shape {x.shape} and allows {x.sum(-1).tolist()} actions; expected "
                    f"{(*lead, x.shape[-1])}, with at least one allowed"
                )
        return masks


def _plain(x: Array) -> Array:
    """In C order, as environments' buffers are: torch takes no flipped or read-only arrays."""
    return np.require(x, None, ["C", "W"])


def _mask_space(mask: Array, lead: int) -> Space:
    return gs.MultiBinary(mask.shape[lead:])


def _size(state: HiddenState) -> int:
    """Of how many episodes this is the state."""
    return len(next(iter(state.values())))


def _rows(flags: Any, name: str, count: int) -> Tensor:
    """Booleans `[B]`; one for all stands for each."""
    found = np.asarray(flags, bool)
    if found.shape not in ((), (count,)):
        raise UsageError(f"{name} has shape {found.shape}; expected ({count},), one for each row")
    return torch.from_numpy(np.broadcast_to(found, (count,)).copy())
