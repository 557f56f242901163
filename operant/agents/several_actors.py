"""Acting for several agents at once: by one policy that they share, or by one for each."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Self

import torch
from torch import Tensor

from operant.core import tree
from operant.core.experience import Arrays, Decision, HiddenState, Memo, Tensors, substate
from operant.core.protocols import Actor, Rows
from operant.core.several import named_for, own, side_by_side
from operant.core.spaces import MASK, is_mask

AGENT_ID = "agent_id"  # the observation that tells a shared policy for whom it acts


class SeparateActor:
    """An actor for each agent, by name; `apart`: each is given its own names only."""

    def __init__(self, actors: Mapping[str, Actor], apart: bool = True) -> None:
        self.actors, self.apart = dict(actors), apart

    @property
    def rows(self) -> Rows | None:
        """What it is given of the batch; None: all."""
        return next(iter(self.actors.values())).rows

    @rows.setter
    def rows(self, rows: Rows | None) -> None:
        for actor in self.actors.values():
            actor.rows = rows

    def act(
        self, observation: Tensors, hidden_state: HiddenState | None = None, explore: bool = True
    ) -> Decision:
        """Every agent's actions `[B, ...]`, and what acting leaves behind, by its name."""
        actions: Tensors = {}
        memos: Tensors = {}
        state = HiddenState()
        for name, actor in self.actors.items():
            seen = own(observation, name) if self.apart else without_others(observation, name)
            action, memo = actor.act(seen, substate(hidden_state or {}, name), explore)
            actions |= named_for(action, name) if self.apart else action
            memos |= named_for(memo.tensors, name)
            state.update(named_for(memo.hidden_state, name))
        return actions, Memo(memos, state)

    def carried(self) -> Arrays:
        """What acting carries on besides weights, by agent."""
        each = (named_for(actor.carried(), name) for name, actor in self.actors.items())
        return {k: x for carried in each for k, x in carried.items()}

    def carry_on(self, carried: Arrays) -> None:
        """Go on from what `carried` gave, or from as much of it as is there."""
        for name, actor in self.actors.items():
            actor.carry_on(own(carried, name) if name else carried)

    state_dict, load_state_dict = carried, carry_on

    def portable(self) -> Self:
        """Itself, or one that draws on the CPU."""
        moved = {name: actor.portable() for name, actor in self.actors.items()}
        if all(moved[name] is actor for name, actor in self.actors.items()):
            return self
        return type(self)(moved, self.apart)

    def __copy__(self) -> Self:
        """The same networks, with random generators of its own."""
        return type(self)({name: copy(x) for name, x in self.actors.items()}, self.apart)


class SharedActor:
    """One actor for all agents, to whom every agent is a row of its own."""

    def __init__(self, actor: Actor, agents: tuple[str, ...], identify: bool) -> None:
        self.actor, self.agents, self.identify = actor, agents, identify
        self._rows: Rows | None = None

    @property
    def rows(self) -> Rows | None:
        """What it is given of the batch; None: all."""
        return self._rows

    @rows.setter
    def rows(self, rows: Rows | None) -> None:
        self._rows = rows
        self.actor.rows = None if rows is None else Rows(*(n * len(self.agents) for n in rows))

    def act(
        self, observation: Tensors, hidden_state: HiddenState | None = None, explore: bool = True
    ) -> Decision:
        """Every agent's actions `[B, ...]` by its name, and memo and state `[B, N, ...]`."""
        seen = side_by_side(observation, self.agents, 1)
        if self.identify:
            seen = with_identity(seen, len(self.agents))
        flat = HiddenState(tree.map(lambda x: x.flatten(0, 1), dict(hidden_state or {})))
        action, memo = self.actor.act(seen, flat, explore)
        actions, memos, state = tree.map(self._apart, (action, memo.tensors, memo.hidden_state))
        each = [named_for(tree.index(actions, (slice(None), i)), k) for i, k in self._numbered()]
        return {k: x for own in each for k, x in own.items()}, Memo(memos, HiddenState(state))

    def _apart(self, x: Tensor) -> Tensor:
        apart: Tensor = x.unflatten(0, (-1, len(self.agents)))
        return apart

    def _numbered(self) -> list[tuple[int, str]]:
        return list(enumerate(self.agents))

    def carried(self) -> Arrays:
        """What acting carries on besides weights."""
        return self.actor.carried()

    def carry_on(self, carried: Arrays) -> None:
        """Go on from what `carried` gave, or from as much of it as is there."""
        self.actor.carry_on(carried)

    state_dict, load_state_dict = carried, carry_on

    def portable(self) -> Self:
        """Itself, or one that draws on the CPU."""
        moved = self.actor.portable()
        return self if moved is self.actor else type(self)(moved, self.agents, self.identify)

    def __copy__(self) -> Self:
        """The same network, with a random generator of its own."""
        return type(self)(copy(self.actor), self.agents, self.identify)


def without_others(observation: Tensors, agent: str) -> Tensors:
    """Observations without the masks over other agents' actions; no agent: all."""
    mine = f"{MASK}.{agent}."
    kept = {k: x for k, x in observation.items() if not is_mask(k) or k.startswith(mine)}
    return kept if agent else observation


def with_identity(observation: Tensors, agents: int, axis: int = 0) -> Tensors:
    """Observations with the number of the agent, one-hot, beside them; rows are `axis`."""
    shown = next(iter(observation.values()))
    *lead, rows = shown.shape[: axis + 1]
    numbers = torch.eye(agents, device=shown.device).repeat(rows // agents, 1)
    return {**observation, AGENT_ID: numbers.expand(*lead, rows, agents)}
