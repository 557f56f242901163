"""Multi-agent deep deterministic policy gradient (MADDPG; arXiv:1706.02275).

Every agent has a policy of what it sees itself and a critic of what all agents see and do, which
is needed for learning only. Discrete actions are one-hot vectors to critics, and the gradient flows
through them by the Gumbel-softmax trick.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, cast

import torch
from torch import Tensor, nn

from operant.agents.actor import Actor
from operant.agents.critics import POLICY_NAME, Critics, check_bounds
from operant.agents.ddpg import DDPG, DDPGConfig
from operant.agents.exploration import Noise
from operant.agents.off_policy import Due, OffPolicy
from operant.agents.optimizer import Hooks
from operant.agents.relaxed_selector import (
    JointCriticState,
    RelaxedSelector,
    relaxed_outputs,
    spread,
)
from operant.agents.several_actors import SeparateActor, without_others
from operant.agents.several_agents import member_seed, parts_for, states_of
from operant.agents.sub_policies import SUB_POLICY, SubPolicySelector, picked
from operant.agents.unroll import unroll
from operant.core import tree
from operant.core.config import Count, CountOrZero, Fraction, Positive
from operant.core.errors import UsageError
from operant.core.experience import Experience, HiddenState, Tensors, beside
from operant.core.protocols import Network, Parts, ReplayMemory
from operant.core.several import own, part_of_names, seen_by
from operant.core.spaces import Space, Spaces, choices
from operant.ops import deterministic, relaxed
from operant.ops.distribution import POLICY, masks_of

GUMBEL = "gumbel."  # what the noise of discrete actions begins with, in the memo of a batch


@dataclass(frozen=True, kw_only=True)
class MADDPGConfig(DDPGConfig):
    """How MADDPG learns."""

    network_defaults = (("hidden", (64, 64)), ("activation", "relu"), ("init", "default"))

    gamma: Fraction = 0.95  # discount factor
    tau: Fraction = 0.01  # Polyak averaging of the target networks
    learning_starts: CountOrZero = 2_000  # random exploration steps before the first update
    batch_size: Count = 1_024  # samples in a batch
    updates_per_step: Positive = 0.1  # gradient steps of every agent for each environment step
    sub_policies: Count = 1  # policies of each agent, of which every episode draws one
    # by agent, whom its critic sees besides itself, as in agent_0=[agent_1]; by default all
    critic_visible_actors: dict[str, Any] = field(default_factory=dict)


class Member(DDPG):
    """One agent's policy and critic, over batches that tell of all agents."""

    def __init__(
        self,
        network: Network,
        critics: Critics,
        action_space: dict[str, Space],
        config: MADDPGConfig,
        seed: int,
        name: str,
        several: bool,
        hooks: Hooks = Hooks(),
    ) -> None:
        memory: Any = None  # the one memory is not its own
        super().__init__(network, critics, spread(action_space), memory, config, seed, hooks)
        self.choices = {k: choices(x) for k, x in action_space.items() if choices(x)}
        self.several, self.policies = several, config.sub_policies
        self.number = f"{name}.{SUB_POLICY}" if name else SUB_POLICY
        self.agent, selector = name, cast(Any, self.selector)
        if self.choices:
            noise = Noise(config.exploration, config.exploration_scale, config.exploration_theta)
            selector = RelaxedSelector(action_space, noise, config.learning_starts)
        self.shapes = selector.shapes  # of continuous actions
        if self.policies > 1:
            selector = SubPolicySelector(selector, self.policies)
        seen = {k: tuple(x.shape or ()) for k, x in critics.spaces.items()}
        carried = JointCriticState(critics.network, seen) if network.recurrent else None
        self.selector = selector
        modules = self.actor.mode_dependent  # found already, and in eval mode by now
        self.actor = Actor(network, selector, seed, POLICY_NAME, carried)
        self.actor.mode_dependent = modules

    def counted(self, batch: Experience) -> Tensor | None:
        """As of DDPG, but a window may begin where this agent is gone already."""
        return batch.valid[slice(*self.learned_rows)] if self.several else super().counted(batch)

    def propose(self, network: Network, batch: Experience, rows: tuple[int, int]) -> Tensors:
        """Actions of a policy in these rows; discrete ones as one-hot vectors, drawn."""
        out = unroll(network, batch, self.selector.outputs, rows, POLICY_NAME)
        if self.hooks.actions is not None:
            return self.hooks.actions(out)
        if self.policies > 1:
            # What a step led to belongs to the same episode, so to the same policy.
            back = int(rows[1] > len(batch.reward))
            number = batch.memo[self.number][rows[0] - back : rows[1] - back]
            out = {k: picked(x, number) for k, x in out.items()}
        action = deterministic.squashed(out, self.shapes)
        shown = tree.index(without_others(batch.observation, self.agent), slice(*rows))
        masks = masks_of(shown, self.selector.names)
        for name, sizes in self.choices.items():
            noise, logits = batch.memo[GUMBEL + name][slice(*rows)], out[POLICY + name]
            action[name] = relaxed.gumbel_softmax(logits, noise, sizes, masks.get(name))
        return action


class MADDPG(OffPolicy):
    """A DDPG for each agent, and one memory of what happened to all of them."""

    for_several = True
    saved = ("members", "memory", "updates")
    config: MADDPGConfig

    def __init__(
        self, members: dict[str, Member], memory: ReplayMemory, config: MADDPGConfig
    ) -> None:
        self.members, self.memory, self.config = members, memory, config
        networks: Any = {name: x.network for name, x in members.items()}
        alone = "" in networks
        self.network: Any = networks[""] if alone else nn.ModuleDict(networks)
        self.actor: Any = SeparateActor({k: x.actor for k, x in members.items()}, apart=False)
        self.descents = tuple(step for x in members.values() for step in x.descents)
        self.updates, self.learned = 0, []
        self.windows(recurrent=next(iter(members.values())).network.recurrent)

    @classmethod
    def create(cls, parts: Parts, config: MADDPGConfig, seed: int) -> Self:
        """The agents with networks of their own and one replay buffer."""
        spaces = parts.spaces
        names = spaces.agents or ("",)
        visible = _visible(config.critic_visible_actors, names)
        check_bounds(spaces.action, "MADDPG")
        members = {}
        for i, name in enumerate(names):
            seen, done = part_of_names(spaces, (name,)), spread(spaces.action)
            outputs = relaxed_outputs(seen.action)
            network = parts_for(parts, seen).network(outputs, members=config.sub_policies)
            wide = part_of_names(Spaces(spaces.observation, done), visible[name])
            critic = Critics.make(parts_for(parts, wide), config.critics)
            critics = Critics(critic, wide.action, config.critics)
            mine = (seen.action, config, member_seed(seed, i))
            members[name] = Member(network, critics, *mine, name, several=len(names) > 1)
        return cls(members, parts.replay(config, seed), config)

    def initial_state(self, batch_size: int) -> HiddenState:
        """What acting carries into fresh episodes, by agent."""
        return states_of(self.members, batch_size)

    def due(self) -> Due:
        """The critics, and every `policy_every` gradient steps policies and target networks."""
        delayed = (self.updates + 1) % self.config.policy_every
        return frozenset({"value"} if delayed else {"value", "policy", "target"})

    def normalizing(self) -> tuple[Network, ...]:
        return tuple(network for x in self.members.values() for network in x.normalizing())

    def steps_taken(self) -> int:
        return next(iter(self.members.values())).steps_taken()

    def weights(self) -> tuple[str, ...]:
        raise UsageError("the weights of several agents cannot start another run; resume the run")

    def descend_on(self, batch: Experience, weight: Tensor | None, due: Due) -> Tensors:
        """A step of every agent; targets are made of what all target policies would do (eq. 6)."""
        batch = self.prepared(batch)
        views = [self.view(batch, i) for i in range(len(self.members))]
        ahead = self.ahead(views)
        metrics: Tensors = {}
        errors = []
        for view, (name, member) in zip(views, self.members.items(), strict=True):
            found = member.step(view, weight, due, ahead)
            errors.append(found.pop("td_error"))
            metrics |= {f"{name}/{k}" if name else k: x for k, x in found.items()}
        return {**metrics, "td_error": torch.stack(errors).mean(0)}

    def ahead(self, views: Sequence[Experience]) -> Tensors:
        """What all target policies would do after each step; zeros of agents that are gone then."""
        found: Tensors = {}
        for view, member in zip(views, self.members.values(), strict=True):
            action = member.ahead(view)
            found |= _where(view.valid & ~view.terminated, action) if member.several else action
        return found

    def view(self, batch: Experience, i: int) -> Experience:
        """The batch with the rewards, ends, valid steps and hidden state of agent `i`."""
        if not batch.agents:
            return batch
        state = own(batch.hidden_state, tuple(self.members)[i])
        return seen_by(batch, i)._replace(hidden_state=HiddenState(state), agents=None)

    def prepared(self, batch: Experience) -> Experience:
        """The batch as critics read it: choices one-hot, and zeros from agents that are gone."""
        action, memo = dict(batch.action), dict(batch.memo)
        rows = (len(batch.reward) + 1, batch.reward.shape[1])
        for i, member in enumerate(self.members.values()):
            for name, sizes in member.choices.items():
                chosen = batch.action[name].reshape(*batch.reward.shape, len(sizes))
                action[name] = relaxed.one_hot(chosen, sizes)
                memo[GUMBEL + name] = relaxed.gumbel_noise((*rows, sum(sizes)), member.generator)
            if batch.agents:
                mine = {name: action[name] for name in member.selector.names}
                action |= _where(batch.agents["valid"][..., i], mine)
        return batch._replace(action=action, memo=memo)


def _where(alive: Tensor, action: Tensors) -> Tensors:
    """Actions of those who are there, else zeros."""
    return {name: torch.where(beside(alive, x), x, 0.0) for name, x in action.items()}


def _visible(asked: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Whom each agent's critic sees, itself included."""
    known = set(names)
    if unknown := {str(x) for k, of in asked.items() for x in (k, *of)} - known:
        raise UsageError(
            f"critic_visible_actors = {dict(asked)}: there is no agent {sorted(unknown)[0]!r}; "
            f"expected some of {', '.join(names)}"
        )
    listed = {k: {k, *asked.get(k, names)} for k in names}
    return {k: tuple(x for x in names if x in listed[k]) for k in names}
