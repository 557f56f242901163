"""Any agent over several in one environment: one policy that they share, or one for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from gymnasium.spaces import Box
from torch import nn

from operant.agents.agent import AgentBase
from operant.agents.several_actors import AGENT_ID, SeparateActor, SharedActor, with_identity
from operant.core.config import AgentConfig
from operant.core.errors import UsageError
from operant.core.experience import (
    Arrays,
    EnvStep,
    Experience,
    HiddenState,
    Memo,
    Metrics,
    Tensors,
)
from operant.core.protocols import Parts, RolloutMemory
from operant.core.schedule import Schedule
from operant.core.seeds import derived
from operant.core.several import as_rows, named_for, part_of, spaces_of
from operant.core.spaces import Spaces
from operant.core.state import restore, state_of

COMMON = ("learning_rate", "exploration_rate")  # metrics that are the same for every agent
View = Callable[[Experience], Experience]  # of a record, what one memory stores


class Views:
    """Memories that each store their own view of what was collected."""

    def __init__(self, views: Sequence[tuple[View, Any]], cache: RolloutMemory) -> None:
        self.views, self.cache = list(views), cache

    def store(self, chunk: Experience) -> None:
        """Keep a chunk, in every memory its view of it."""
        for view, memory in self.views:
            memory.store(view(chunk))

    def write(self, observation: Arrays, action: Tensors, memo: Memo, step: EnvStep) -> None:
        """One step, in a loop of your own; kept when a chunk is whole."""
        self.cache.write(observation, action, memo, step)
        if self.cache.ready():
            self.store(self.cache.read())

    def ready(self) -> bool:
        """Whether there is something to learn from."""
        return any(memory.ready() for _, memory in self.views)

    def state_dict(self) -> dict[str, Any]:
        """The chunk that is being written; the memories are saved with their agents."""
        return self.cache.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave."""
        self.cache.load_state_dict(state)


class SharedAgents(AgentBase):
    """One agent that acts for all, each of whom is a row of its own to it.

    Its steps are those of agents; schedules still go by steps of the environment.
    """

    saved = ("member",)
    updates = property(lambda self: self.member.updates)

    def __init__(
        self, member: Any, agents: tuple[str, ...], cache: RolloutMemory, identify: bool = False
    ) -> None:
        self.member, self.agents, self.identify = member, agents, identify
        self.network, self.descents = member.network, member.descents
        self.actor: Any = SharedActor(member.actor, agents, identify)
        self.memory = Views([(self.rows_of, member.memory)], cache)
        self.learned: list[Tensors] = []

    @classmethod
    def create(
        cls, parts: Parts, kind: Any, config: AgentConfig, seed: int, identify: bool = False
    ) -> Self:
        """The agent of class `kind` behind all agents of these spaces."""
        agents = parts.spaces.agents
        spaces = alike(parts.spaces)
        if identify:
            count = len(agents)
            number = Box(0, 1, (count,), dtype=np.float32)
            spaces = replace(spaces, observation={**spaces.observation, AGENT_ID: number})
        schedules = {k: x for k, x in vars(config).items() if isinstance(x, Schedule)}
        longer: dict[str, Any] = {k: x.longer(len(agents)) for k, x in schedules.items()}
        member = kind.create(parts_for(parts, spaces), replace(config, **longer), seed)
        return cls(member, agents, parts.rollout(config.length), identify)

    def rows_of(self, chunk: Experience) -> Experience:
        """The record with every agent as a row."""
        rows = as_rows(chunk, self.agents)
        if not self.identify:
            return rows
        seen = (rows.observation, rows.final_observation)
        shown, final = (with_identity(x, len(self.agents), axis=1) for x in seen)
        return rows._replace(observation=shown, final_observation=final)

    def initial_state(self, batch_size: int) -> HiddenState:
        """The recurrent state `[B, N, ...]` of fresh episodes."""
        count = len(self.agents)
        state = self.member.initial_state(batch_size * count)
        return HiddenState({k: x.unflatten(0, (batch_size, count)) for k, x in state.items()})

    def update(self) -> Metrics:
        """Learn what is due; mean metrics."""
        metrics: Metrics = self.member.update()
        self.learned = self.member.learned
        return metrics

    def compile(self) -> None:
        self.member.compile()

    def weights(self) -> tuple[str, ...]:
        """Those of the one agent: another run may start from them."""
        return self.saved

    def state_dict(self) -> dict[str, Any]:
        """What the one agent saves, and the chunk that is being written in a loop of one's own."""
        return state_of(self, *self.saved, "memory")

    def load_state_dict(self, state: dict[str, Any]) -> None:
        restore(self, state, *self.saved, "memory")


class SeparateAgents(AgentBase):
    """An agent for each, with a network, a memory and random numbers of its own."""

    saved = ("members", "memory")
    updates = property(lambda self: sum(x.updates for x in self.members.values()))

    def __init__(self, members: dict[str, Any], cache: RolloutMemory) -> None:
        self.members = members
        self.network: Any = nn.ModuleDict({name: x.network for name, x in members.items()})
        self.descents = tuple(step for x in members.values() for step in x.descents)
        self.actor: Any = SeparateActor({name: x.actor for name, x in members.items()})
        parts = [partial(part_of, agent=name, i=i) for i, name in enumerate(members)]
        memories = [x.memory for x in members.values()]
        self.memory = Views(list(zip(parts, memories, strict=True)), cache)
        self.learned: list[Tensors] = []

    @classmethod
    def create(cls, parts: Parts, kind: Any, config: AgentConfig, seed: int) -> Self:
        """An agent of class `kind` for each agent of these spaces."""
        members = {
            name: kind.create(
                parts_for(parts, spaces_of(parts.spaces, name)), config, member_seed(seed, i)
            )
            for i, name in enumerate(parts.spaces.agents)
        }
        return cls(members, parts.rollout(config.length))

    def initial_state(self, batch_size: int) -> HiddenState:
        """The recurrent state of fresh episodes, by agent."""
        return states_of(self.members, batch_size)

    def update(self) -> Metrics:
        """Every agent learns what is due; its mean metrics under its name."""
        each = {name: x.update() for name, x in self.members.items()}
        self.learned = [step for x in self.members.values() for step in x.learned]
        return by_agent(each)

    def compile(self) -> None:
        for member in self.members.values():
            member.compile()

    def weights(self) -> tuple[str, ...]:
        raise UsageError(
            "agents = 'separate': the weights of several agents cannot start another run; use "
            "agents = 'shared', or resume the run itself"
        )


def states_of(members: Mapping[str, Any], batch_size: int) -> HiddenState:
    """The recurrent states of several agents by their names."""
    each = {name: x.initial_state(batch_size) for name, x in members.items()}
    named = (named_for(state, name) for name, state in each.items())
    return HiddenState({k: x for state in named for k, x in state.items()})


def by_agent(each: dict[str, Metrics]) -> Metrics:
    """Metrics as `<agent>/<name>`; what is the same for all once, and the gradient steps of all."""
    found = {f"{k}/{n}": x for k, metrics in each.items() for n, x in metrics.items() if k}
    first: Metrics = next((metrics for metrics in each.values() if metrics), {})
    for name in (*COMMON, "n_updates"):
        for agent in each:
            found.pop(f"{agent}/{name}", None)
    common = {name: first[name] for name in COMMON if name in first}
    steps = {"n_updates": sum(x["n_updates"] for x in each.values() if "n_updates" in x)}
    return {**found, **common, **steps} if first else {}


def member_seed(seed: int, i: int) -> int:
    """The seed of one of several agents; the first has that of a single one."""
    return derived(seed, i) if i else seed


def parts_for(parts: Parts, spaces: Spaces) -> Parts:
    """The same parts for other spaces; initial weights are drawn on from one generator."""
    other = copy(parts)
    other.spaces = spaces
    return other


def alike(spaces: Spaces) -> Spaces:
    """What every agent sees and does, which must be the same for all who share a policy."""
    each = {name: spaces_of(spaces, name) for name in spaces.agents}
    (first, common), *others = each.items()
    for name, other in others:
        if other != common:
            raise UsageError(
                f"agents = 'shared': {first} has {common}, and {name} has {other}; one policy "
                f"needs the same spaces for all; use agents = 'separate'"
            )
    return common
