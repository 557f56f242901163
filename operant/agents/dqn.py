"""Deep Q-learning (DQN; Nature 518, 2015) with double, duelling and n-step as settings.

The Q-value of an action of several discrete parts is the sum over its parts, so the best action is
the best of each part, and one discrete action is the case of one part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Generator, Tensor

from operant.agents.actor import ActionSelector, Actor
from operant.agents.off_policy import Due, OffPolicy, window_error
from operant.agents.optimizer import GradientStep, Hooks, Losses, Optimizer, OptimizerName
from operant.agents.target import Target
from operant.agents.unroll import unroll
from operant.core import tree
from operant.core.config import (
    AgentConfig,
    Count,
    CountOrZero,
    Fraction,
    NotNegative,
    Rate,
    Share,
    variant,
)
from operant.core.errors import UsageError
from operant.core.experience import Experience, Metrics, Tensors
from operant.core.protocols import Network, Parts, ReplayMemory
from operant.core.schedule import Schedule
from operant.core.spaces import Shape, Space, choices
from operant.memory.replay_settings import ReplayConfig
from operant.ops import explore, policy, value
from operant.ops.distribution import masks_of
from operant.ops.value import Q


@dataclass(frozen=True, kw_only=True)
class DQNConfig(ReplayConfig, AgentConfig):
    """How DQN learns."""

    network_defaults = (("activation", "relu"), ("init", "default"))

    length: Count = 4  # environment steps of each environment between updates
    lr: Rate = Schedule(1e-4)  # learning rate: a number, or linear(start, end, steps)
    optimizer: OptimizerName = "adam"  # optimizer, as in torch.optim
    gamma: Fraction = 0.99  # discount factor
    epsilon: Share = Schedule(1.0, 0.05, percent=10, run=100_000)  # exploration rate
    target_every: Count = 1_000  # gradient steps between updates of the target network
    tau: Fraction = 1.0  # Polyak averaging of the target network; 1: a copy
    double: bool = True  # double Q-learning (arXiv:1509.06461)
    dueling: bool = False  # duelling network: value and advantages apart (arXiv:1511.06581)
    n_step: Count = 1  # n of the n-step return
    sequence: Count = 16  # consecutive steps in a sample, for recurrent networks
    burn_in: CountOrZero = 0  # steps before those, which only bring the hidden state up to date
    max_grad_norm: NotNegative = 10.0  # gradient clipping: the largest norm; 0: no clipping


DQNPerConfig = variant(
    DQNConfig, "DQNPerConfig", "How DQN learns from a prioritized replay buffer.", prioritized=True
)


class EpsilonGreedy(ActionSelector):
    """The best action, or with probability epsilon a random one."""

    def __init__(self, action_space: dict[str, Space], epsilon: Schedule) -> None:
        super().__init__(action_space, (Q + name for name in action_space))
        self.action_space, self.epsilon = action_space, epsilon
        self.choices = {name: choices(space) for name, space in action_space.items()}

    def explore(self, out: Tensors, masks: Tensors, generator: Generator, acted: int) -> Tensors:
        batch, device = len(next(iter(out.values()))), generator.device
        other = explore.uniform(self.action_space, batch, masks, generator, device)
        best = self.exploit(out, masks)
        return explore.epsilon_greedy(best, other, self.epsilon(acted), generator)

    def exploit(self, out: Tensors, masks: Tensors) -> Tensors:
        best = value.greedy({name: out[Q + name] for name in self.choices}, self.choices, masks)
        return {k: x.reshape(-1, *(self.action_space[k].shape or ())) for k, x in best.items()}


class DQN(OffPolicy):
    """Learns Q-values from a replay buffer, with a target network."""

    saved = ("network", "target", "optimizer", "actor", "memory", "updates")
    config: DQNConfig

    def __init__(
        self,
        network: Network,
        action_space: dict[str, Space],
        memory: ReplayMemory,
        config: DQNConfig,
        seed: int,
        hooks: Hooks = Hooks(),
    ) -> None:
        self.network, self.memory, self.config = network, memory, config
        self.target, self.names = Target(network), tuple(action_space)
        selector = EpsilonGreedy(action_space, config.epsilon)
        self.choices = selector.choices
        self.actor = Actor(network, selector, seed)
        rule = hooks.optimizers.get("value", config.optimizer)
        weights = network.parameters()
        self.optimizer = Optimizer(weights, config.lr, config.max_grad_norm, rule)
        self.descents = (GradientStep("loss", self.compute_loss, self.optimizer),)
        self.updates, self.learned = 0, []
        self.windows(network.recurrent)

    @classmethod
    def create(cls, parts: Parts, config: DQNConfig, seed: int) -> Self:
        """The agent with a network and a replay buffer of its own."""
        action_space = parts.spaces.action
        outputs = cls.output_space(action_space) | ({"value": (1,)} if config.dueling else {})
        memory = parts.replay(config, seed)
        return cls(parts.network(outputs), action_space, memory, config, seed)

    @staticmethod
    def output_space(action_space: dict[str, Space]) -> dict[str, Shape]:
        """What the network must give: a Q-value for each choice of each action."""
        for name, space in action_space.items():
            if not choices(space):
                raise UsageError(
                    f"action {name!r} is {space}: DQN takes the best of finitely many actions, "
                    f"and a Box has no such list; use sac or ppo"
                )
        return {Q + name: (sum(choices(space)),) for name, space in action_space.items()}

    def due(self) -> Due:
        """The values, and every `target_every` gradient steps the target network."""
        moves = (self.updates + 1) % self.config.target_every == 0
        return frozenset({"value", "target"}) if moves else frozenset({"value"})

    def descend_on(self, batch: Experience, weight: Tensor | None, due: Due) -> Tensors:
        metrics = self.descend(self.descents[0], batch, weight)
        if "target" in due:
            self.target.polyak_update(self.config.tau)
        return metrics

    def rates(self) -> Metrics:
        return super().rates() | {"exploration_rate": self.config.epsilon(self.actor.acted)}

    def compute_loss(self, batch: Experience, weight: Tensor | None = None) -> Losses:
        """Huber loss of the TD error of the learned steps; `weight` `[B]` of each window."""
        rows = self.learned_rows
        taken = tree.index(batch.action, slice(*rows))
        q = value.q_of(self.q_values(self.network, batch, rows), taken, self.choices)
        td_error, valid = q - self.targets(batch)[slice(*rows)], self.counted(batch)
        loss = value.huber(td_error)
        losses = {"q": policy.masked_mean(loss if weight is None else weight * loss, valid)}
        metrics = {"q_values": policy.masked_mean(q, valid)}
        return losses, metrics | {"td_error": window_error(td_error.detach(), valid)}

    @torch.no_grad()
    def targets(self, batch: Experience) -> Tensor:
        """n-step targets `[T, B]`: r + γ Q'(s', argmax_a Q(s', a)); Q' the target network's.

        Without `double` the best action is the target network's own.
        """
        rows = (1, len(batch.reward) + 1)
        next_q = self.q_values(self.target.network, batch, rows)
        chooser = self.q_values(self.network, batch, rows) if self.config.double else next_q
        masks = masks_of(tree.index(batch.observation, slice(*rows)), self.names)
        best = value.greedy(chooser, self.choices, masks)
        return self.n_step(batch, value.q_of(next_q, best, self.choices))

    def q_values(self, network: Network, batch: Experience, rows: tuple[int, int]) -> Tensors:
        """Q-values by action name of every choice in these rows."""
        out = unroll(network, batch, None, rows)
        q = {name: out[Q + name] for name in self.names}
        return value.dueling(q, out["value"], self.choices) if self.config.dueling else q
