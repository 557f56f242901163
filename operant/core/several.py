"""Several agents in one record: each one's part of it, or every agent as a row of its own.

What an agent sees and does is named `<agent>.<name>`, and the mask over an action of its own
`action_mask.<agent>.<action>`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

from operant.core import tree
from operant.core.experience import Experience, HiddenState
from operant.core.spaces import MASK, Spaces, is_mask

X = TypeVar("X")


def own(parts: Mapping[str, X], agent: str) -> dict[str, X]:
    """What belongs to one agent, by the names that it would have alone."""
    masks, prefix = f"{MASK}.{agent}.", f"{agent}."
    found = {}
    for name, x in parts.items():
        if name.startswith(prefix):
            found[name.removeprefix(prefix)] = x
        elif name.startswith(masks):
            found[f"{MASK}.{name.removeprefix(masks)}"] = x
    return found


def named_for(parts: Mapping[str, X], agent: str) -> dict[str, X]:
    """The inverse of `own`; no agent: names stay as they are."""
    if not agent:
        return dict(parts)
    return {
        f"{MASK}.{agent}.{k.removeprefix(MASK + '.')}" if is_mask(k) else f"{agent}.{k}": x
        for k, x in parts.items()
    }


def spaces_of(spaces: Spaces, agent: str) -> Spaces:
    """What one agent sees and does."""
    stacked = tuple(own(dict.fromkeys(spaces.stacked), agent))
    return Spaces(own(spaces.observation, agent), own(spaces.action, agent), stacked)


def part_of_names(spaces: Spaces, agents: Sequence[str]) -> Spaces:
    """What these agents see and do, under the names of the whole; all, if they have no names."""
    if "" in agents:
        return spaces
    begins = tuple(x for agent in agents for x in (f"{agent}.", f"{MASK}.{agent}."))
    seen = {k: x for k, x in spaces.observation.items() if k.startswith(begins)}
    done = {k: x for k, x in spaces.action.items() if k.startswith(begins)}
    return Spaces(seen, done)


def seen_by(batch: Experience, i: int) -> Experience:
    """The record with the rewards, ends and valid steps of agent `i`, under all names as before.

    Once it is gone, its rows are not valid; what its last step led to is the row after.
    """
    mine = {name: x[..., i] for name, x in batch.agents.items()}
    truncated = batch.ended & ~mine["terminated"]
    return batch._replace(**mine, truncated=truncated)


def part_of(chunk: Experience, agent: str, i: int) -> Experience:
    """What agent `i` would have recorded alone."""
    final = chunk.final_observation
    return seen_by(chunk, i)._replace(
        observation=own(chunk.observation, agent),
        hidden_state=HiddenState(own(chunk.hidden_state, agent)),
        action=own(chunk.action, agent),
        memo=own(chunk.memo, agent),
        final_observation=None if final is None else own(final, agent),
        agents=None,
    )


def side_by_side(parts: Mapping[str, Tensor], agents: Sequence[str], axis: int) -> dict[str, Any]:
    """What every agent sees, by the names of one, with the agents as an axis before `axis`'s end.

    `[B, ...]` by agent becomes `[B · N, ...]`, row `b · N + i` that of agent `i`.
    """
    each = [own(parts, agent) for agent in agents]
    return {
        name: torch.stack([x[name] for x in each], axis).flatten(axis - 1, axis) for name in each[0]
    }


def as_rows(chunk: Experience, agents: Sequence[str]) -> Experience:
    """The record `[T, B · N]` in which every agent is a row of its own.

    Memo and hidden state of the given one are `[T, B, N, ...]`.
    """
    count = len(agents)
    each = [seen_by(chunk, i) for i in range(count)]
    told = ("reward", "terminated", "truncated", "valid")
    return chunk._replace(
        observation=side_by_side(chunk.observation, agents, 2),
        hidden_state=HiddenState(tree.map(_flat, dict(chunk.hidden_state))),
        first=chunk.first.repeat_interleave(count, 1),
        action=side_by_side(chunk.action, agents, 2),
        memo=tree.map(_flat, chunk.memo),
        final_observation=side_by_side(chunk.final_observation, agents, 2),
        replaced=chunk.replaced.repeat_interleave(count, 1),
        agents=None,
        **{k: torch.stack([getattr(x, k) for x in each], 2).flatten(1, 2) for k in told},
    )


def _flat(x: Tensor) -> Tensor:
    return x.flatten(1, 2)
