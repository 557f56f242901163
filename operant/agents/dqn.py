"""Deep Q-learning (DQN; Nature 518, 2015); what Rainbow adds (arXiv:1710.02298) are settings.

The Q-value of an action of several discrete parts is the sum over its parts, so the best action is
the best of each part, and one discrete action is the case of one part.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Self

import torch
from torch import Generator, Tensor

from operant.agents.actor import ActionSelector, Actor
from operant.agents.head import AtomHead, QHead
from operant.agents.modes import noisy_layers
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
from operant.ops import explore, policy, returns, value
from operant.ops.distribution import masks_of
from operant.ops.value import Criterion, Q, huber_loss


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
    noisy: bool = False  # noisy networks: exploration by noise in weights (arXiv:1706.10295)
    atoms: CountOrZero = 0  # atoms of distributional Q-learning (arXiv:1707.06887); 0 or 1: off
    value_min: float = -10.0  # with atoms: the lowest discounted return that can be predicted
    value_max: float = 10.0  # with atoms: the highest; returns beyond either count as that
    n_step: Count = 1  # n of the n-step return
    sequence: Count = 16  # consecutive steps in a sample, for recurrent networks
    burn_in: CountOrZero = 0  # steps before those, which only bring the hidden state up to date
    max_grad_norm: NotNegative = 10.0  # gradient clipping: the largest norm; 0: no clipping


DQNPerConfig = variant(
    DQNConfig, "DQNPerConfig", "How DQN learns from a prioritized replay buffer.", prioritized=True
)
RainbowConfig = variant(
    DQNConfig,
    "RainbowConfig",
    "How Rainbow learns: DQN with all of its extensions.",
    epsilon=0.0,
    dueling=True,
    noisy=True,
    atoms=51,
    n_step=3,
    prioritized=True,
    priority_alpha=0.5,
)


class EpsilonGreedy(ActionSelector):
    """The best action, or with probability epsilon a random one."""

    def __init__(self, action_space: dict[str, Space], head: QHead, epsilon: Schedule) -> None:
        super().__init__(action_space, head.acting)
        self.action_space, self.head, self.epsilon = action_space, head, epsilon

    def explore(self, out: Tensors, masks: Tensors, generator: Generator, acted: int) -> Tensors:
        batch, device = len(next(iter(out.values()))), generator.device
        other = explore.uniform(self.action_space, batch, masks, generator, device)
        best = self.exploit(out, masks)
        return explore.epsilon_greedy(best, other, self.epsilon(acted), generator)

    def exploit(self, out: Tensors, masks: Tensors) -> Tensors:
        best = value.greedy(self.head.ranked(out), self.head.choices, masks)
        return {k: x.reshape(-1, *(self.action_space[k].shape or ())) for k, x in best.items()}


class DQN(OffPolicy):
    """Learns Q-values from a replay buffer, with a target network."""

    saved = ("network", "target", "optimizer", "generator", "actor", "memory", "updates")
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
        self.target = Target(network, hooks.targets.get("value"))
        self.names, self.backup = tuple(action_space), hooks.backup
        self.head = self.head_for(action_space, config, hooks.criterion or huber_loss)
        self.actor = Actor(network, EpsilonGreedy(action_space, self.head, config.epsilon), seed)
        self.noisy = noisy_layers(network) + noisy_layers(self.target.network)
        # Of the noise to learn with.
        self.generator = torch.Generator(self.actor.device).manual_seed(seed)
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
        cls.output_space(action_space)  # which refuses what it cannot take
        outputs = cls.head_for(action_space, config).outputs()
        network = parts.network(outputs, noisy=config.noisy)
        return cls(network, action_space, parts.replay(config, seed), config, seed)

    @staticmethod
    def head_for(
        action_space: dict[str, Space], config: DQNConfig, criterion: Criterion = huber_loss
    ) -> QHead:
        """What the outputs of the network mean."""
        if config.atoms < 2:
            return QHead(action_space, config.dueling, criterion)
        atoms = config.atoms, config.value_min, config.value_max
        return AtomHead(action_space, config.dueling, *atoms)

    @staticmethod
    def output_space(action_space: dict[str, Space]) -> dict[str, Shape]:
        """What a network must give at least: a Q-value for each choice of each action."""
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
        for layer in self.noisy:
            layer.redraw(self.generator)
        metrics = self.descend(self.descents[0], batch, weight, move="value" in due)
        if "target" in due:
            self.target.polyak_update(self.config.tau)
        return metrics

    def rates(self) -> Metrics:
        return super().rates() | {"exploration_rate": self.config.epsilon(self.actor.acted)}

    def compute_loss(self, batch: Experience, weight: Tensor | None = None) -> Losses:
        """The loss of the head over the learned steps; `weight` `[B]` of each window."""
        rows, valid = self.learned_rows, self.counted(batch)
        taken, head = tree.index(batch.action, slice(*rows)), self.head
        predicted = head.of_action(self.predict(self.network, batch, rows), taken)
        target = self.targets(batch)[slice(*rows)]
        loss, error = head.loss(predicted, target)
        losses = {"q": policy.reduced(loss if weight is None else weight * loss, valid)}
        told = {"q_values": head.mean(predicted), **head.metrics(target)}
        metrics = {name: policy.masked_mean(x, valid) for name, x in told.items()}
        return losses, metrics | {"td_error": window_error(error.detach(), valid)}

    @torch.no_grad()
    def targets(self, batch: Experience) -> Tensor:
        """n-step targets `[T, B, ...]`: r + γ Q'(s', argmax_a Q(s', a)); Q' the target network's.

        Without `double` the best action is the target network's own. With atoms, a distribution.
        """
        rows, head = (1, len(batch.reward) + 1), self.head
        following = self.predict(self.target.network, batch, rows)
        chooser = self.predict(self.network, batch, rows) if self.config.double else following
        masks = masks_of(tree.index(batch.observation, slice(*rows)), self.names)
        best = value.greedy(head.q_values(chooser), head.choices, masks)
        at_stop = partial(returns.at_stop, ended=batch.cut, n=self.config.n_step)
        return head.target(head.of_action(following, best), partial(self.n_step, batch), at_stop)

    def predict(self, network: Network, batch: Experience, rows: tuple[int, int]) -> Tensors:
        """What a network predicts by action name of every choice in these rows."""
        return self.head.read(unroll(network, batch, None, rows))
