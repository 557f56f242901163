"""The one record of what happened: arrays that begin `[T, B]`, time then environments.

Row `t` holds what the agent saw (`observation`, the `hidden_state` it carried in, whether an
episode begins here: `first`), what it did (`action`, and the `memo` that acting left behind for
learning) and what came of it (`reward`, `terminated`, `truncated`). Observations, hidden states
and `first` have one row more: what the next action will see.

`hidden_state` is what the step before carried out, untouched by episode ends; `first` says where
it has to be reset. So the state after the last step of an episode is not lost.

Where `valid` is false, nothing was decided: the environment only reset itself, and what it
showed was the final observation of the episode before. Such a row never enters a loss.

Where several agents share an environment, `agents` tells their rewards, deaths and who was there to
act, `[T, B, N]`; `reward` is then their sum, and `terminated` says that no agent is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from operant.core.namedarraytuple import ArrayTuple
from operant.core.tree import Array

Arrays = dict[str, Array]
Tensors = dict[str, Tensor]
Metrics = dict[str, float]


class HiddenState(dict[str, Tensor]):
    """Tensors `[B, ...]` by name; empty for a network without memory. Zero is a fresh state."""

    def detach(self) -> HiddenState:
        """The same numbers with no gradient behind them."""
        return HiddenState({name: x.detach() for name, x in self.items()})

    def reset(self, mask: Tensor) -> HiddenState:
        """Fresh state in the rows where `mask` `[B]` is true."""
        return HiddenState({name: x.masked_fill(beside(mask, x), 0.0) for name, x in self.items()})


def substate(state: Mapping[str, Tensor], name: str) -> HiddenState:
    """The hidden state of the network called `name`; of the only one, if it has no name."""
    if not name:
        return HiddenState(state)
    prefix = name + "."
    return HiddenState(
        {k.removeprefix(prefix): x for k, x in state.items() if k.startswith(prefix)}
    )


class _Fields(NamedTuple):
    observation: Any  # Tensors [T+1, B, ...]
    hidden_state: Any  # HiddenState [T+1, B, ...]
    first: Any  # bool [T+1, B]
    action: Any  # Tensors [T, B, ...]
    memo: Any  # Tensors [T, B, ...]
    reward: Any  # float [T, B]
    terminated: Any  # bool [T, B]: the task ended, so nothing is bootstrapped
    truncated: Any  # bool [T, B]: a time limit ended it, so the value is bootstrapped
    valid: Any  # bool [T, B]
    final_observation: Any  # Tensors [T, B, ...], meaningful only where `replaced`
    replaced: Any  # bool [T, B]: observation[t + 1] already belongs to the next episode
    agents: Any = (
        None  # `reward`, `terminated`, `valid` of each [T, B, N]; None: there is one agent
    )


class Experience(ArrayTuple, _Fields):  # type: ignore[misc]  # the index is meant to differ from a tuple's
    """A chunk of experience; NumPy and torch see the same bytes."""

    __slots__ = ()

    @property
    def ended(self) -> Tensor:
        """Where an episode ended, for either reason (the seeds' `terminals`)."""
        ended: Tensor = self.terminated | self.truncated
        return ended

    @property
    def cut(self) -> Tensor:
        """Where returns look no further: the episode ended, or its next step was lost with the
        process that took it."""
        if len(self.valid) == 1:
            return self.ended
        lost = torch.zeros_like(self.valid)
        lost[:-1] = ~self.valid[1:]
        return self.ended | lost

    @property
    def masks(self) -> Tensor:
        """Zero where an episode begins, else one."""
        first: Tensor = self.first
        return 1.0 - first.float()

    @property
    def next_observation(self) -> Tensors:
        """What each action led to, `[T, B, ...]`: never an observation after a reset."""
        if self.replaced is None:  # a memory's: the next row is always what the step led to
            return {name: x[1:] for name, x in self.observation.items()}
        return {
            name: torch.where(beside(self.replaced, x), self.final_observation[name], x[1:])
            for name, x in self.observation.items()
        }


class EnvStep(NamedTuple):
    """What B environments answered; arrays `[B, ...]` that the next step may overwrite."""

    observation: Arrays  # what to act on next
    reward: Array
    terminated: Array
    truncated: Array
    valid: Array  # false where the environment ignored the action and only reset itself
    final_observation: Arrays | None  # rows where an episode ended, if `observation` is past it
    infos: dict[str, Any]
    agents: Arrays | None = None  # `reward`, `terminated`, `valid` of each agent `[B, N]`


class TrajInfo(NamedTuple):
    """One finished episode."""

    length: int
    reward: float  # undiscounted sum, as the environment gave it
    success: bool | None = None  # from `info["is_success"]`, if the environment says
    agents: dict[str, float] | None = None  # of several agents, the sum of each one's rewards


class Memo(NamedTuple):
    """What acting leaves behind: tensors `[B, ...]` for learning, and the state to carry on."""

    tensors: Tensors
    hidden_state: HiddenState


class Drawn(NamedTuple):
    """What was drawn from a replay."""

    experience: Experience  # `[length, batch]`
    weight: Tensor | None  # `[batch]`, of each window's loss; None: all alike
    place: Array  # `[batch]`, for `prioritize`


Decision = tuple[Tensors, Memo]  # actions by name, and what acting left behind


def beside(mask: Tensor, x: Tensor) -> Tensor:
    """`mask` with as many axes as `x`, so that both can be used together."""
    return mask.view(*mask.shape, *(1,) * (x.dim() - mask.dim()))
