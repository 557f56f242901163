"""Critics of an observation and an action, several of them as one ensemble.

Continuous parts of an action are inputs of the critics, and the pathwise gradient flows through
them. Discrete parts are outputs of theirs, a Q-value for each choice. The Q-value of a whole
action is the sum: that of its continuous parts (output `value`), and of each discrete one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import torch
from gymnasium.spaces import Box
from torch import Tensor

from operant.agents.modes import in_eval_mode
from operant.agents.target import Target
from operant.agents.unroll import unroll
from operant.core import tree
from operant.core.errors import UsageError
from operant.core.experience import Experience, HiddenState, Tensors, substate
from operant.core.protocols import Network, Parts
from operant.core.spaces import Space, choices
from operant.ops import value
from operant.ops.policy import reduced
from operant.ops.value import Criterion, Q

NAME, POLICY_NAME = "critic", "actor"  # of the hidden state of critics and of their policy
ACTION = "action."  # what inputs that are actions begin with


class Critics:
    """An ensemble of critics and its target network."""

    def __init__(
        self,
        network: Network,
        action_space: dict[str, Space],
        members: int = 2,
        target: Network | None = None,
    ) -> None:
        self.network, self.target, self.members = network, Target(network, target), members
        self.mode_dependent = in_eval_mode(network)  # recurrent critics run while acting, too
        self.choices = {k: choices(space) for k, space in action_space.items() if choices(space)}
        self.continuous = tuple(name for name in action_space if name not in self.choices)
        self.spaces = action_space

    @staticmethod
    def make(parts: Parts, members: int) -> Network:
        """The networks of critics for these actions."""
        actions = parts.spaces.action
        counts = {Q + k: (sum(choices(space)),) for k, space in actions.items() if choices(space)}
        late = {ACTION + k: space for k, space in actions.items() if not choices(space)}
        return parts.network(({"value": (1,)} if late else {}) | counts, late, members)

    def outputs(
        self, network: Network, batch: Experience, action: Tensors, rows: tuple[int, int]
    ) -> Tensors:
        """What critics give for these continuous actions in these rows, `[T, B, members, n]`."""
        late = {ACTION + name: action[name] for name in self.continuous}
        out = unroll(network, batch, None, rows, NAME, late)
        return out if self.members > 1 else {name: x.unsqueeze(-2) for name, x in out.items()}

    def of_taken(self, batch: Experience, rows: tuple[int, int]) -> Tensor:
        """Each critic's Q-value `[T, B, members]` of the actions taken in these rows."""
        taken = tree.index(batch.action, slice(*rows))
        out = self.outputs(self.network, batch, taken, rows)
        each = {name: torch.stack([taken[name]] * self.members, 2) for name in self.choices}

        def chosen(name: str) -> Tensor:
            return value.q_of({name: out[Q + name]}, {name: each[name]}, self.choices)

        return self.sum_parts(out, chosen)

    def lowest_expected(self, out: Tensors, logits: Tensors, masks: Tensors) -> Tensor:
        """What the critic that expects least expects of a policy's actions, `[...]`.

        Only the sum over an action's parts is learned, which each critic may split otherwise, so
        the minimum is one of sums: of one discrete part choice by choice (arXiv:1910.07207), of
        several, whose combinations are too many to list, of the expectations.
        """
        if sum(map(len, self.choices.values())) == 1:
            (name,) = self.choices
            whole = out[Q + name] + out["value"] if "value" in out else out[Q + name]
            lower = whole.amin(-2)
            return value.expected_q(lower, logits[name], self.choices[name], masks.get(name))

        def expected(name: str) -> Tensor:
            mask = masks[name].unsqueeze(-2) if name in masks else None
            params = logits[name].unsqueeze(-2)  # the same for all critics
            return value.expected_q(out[Q + name], params, self.choices[name], mask)

        return self.sum_parts(out, expected).amin(-1)

    def sum_parts(self, out: Tensors, of_part: Callable[[str], Tensor]) -> Tensor:
        """The whole action's Q-value `[...]`: of its continuous parts, and of each discrete one."""
        parts = [of_part(name) for name in self.choices]
        return reduce(torch.add, [out["value"].squeeze(-1), *parts] if "value" in out else parts)

    def initial_state(self, policy: Network, batch_size: int) -> HiddenState:
        """The recurrent state of `batch_size` fresh episodes, of the policy and of the critics."""
        networks = {POLICY_NAME: policy, NAME: self.network}
        fresh = {name: network.initial_state(batch_size) for name, network in networks.items()}
        return HiddenState({f"{n}.{k}": x for n, state in fresh.items() for k, x in state.items()})

    def state_dict(self) -> dict[str, Any]:
        """Weights of the critics and of their target network."""
        return {"network": self.network.state_dict(), "target": self.target.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave."""
        self.network.load_state_dict(state["network"])
        self.target.load_state_dict(state["target"])


def critic_losses(
    q: Tensor,
    target: Tensor,
    valid: Tensor | None,
    weight: Tensor | None,
    criterion: Criterion | None = None,
) -> Tensors:
    """The loss of each critic over the steps that count; `q` and `target` `[T, B, members]`.

    It is ½ (Q - y)² unless there is a criterion; `weight` `[B]` of each window.
    """
    if criterion is None:
        each = value.value_error(q, target).unbind(-1)
    else:
        pairs = zip(q.unbind(-1), target.expand_as(q).unbind(-1), strict=True)
        each = tuple(criterion(*pair) for pair in pairs)
    weighted = each if weight is None else [weight * loss for loss in each]
    return {f"{NAME}{i}": reduced(loss, valid) for i, loss in enumerate(weighted)}


def check_bounds(action_space: dict[str, Space], agent: str) -> None:
    """Refuse continuous actions without bounds, which are no part of [-1, 1]."""
    for name, space in action_space.items():
        if isinstance(space, Box) and not space.is_bounded():
            raise UsageError(
                f"action {name!r} is {space}: {agent}'s actions lie between bounds, and this Box "
                f"has none; give it bounds in a wrapper, or use ppo"
            )


@dataclass(frozen=True)
class CriticState:
    """Keeps the hidden state of recurrent critics in step with what was seen and done."""

    network: Network
    continuous: tuple[str, ...]  # actions that are inputs of theirs

    def __call__(self, observation: Tensors, state: HiddenState, action: Tensors) -> Tensors:
        seen = {**observation, **{ACTION + k: action[k] for k in self.continuous}}
        after = self.network(seen, substate(state, NAME))[1]
        return {f"{NAME}.{k}": x for k, x in after.items()}
