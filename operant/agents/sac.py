"""Soft actor–critic with twin critics and a learned temperature (SAC; arXiv:1812.05905).

Continuous parts of an action are drawn with the reparameterisation trick. Over discrete parts the
expectation is exact (arXiv:1910.07207). An action may have parts of both kinds; their Q-values and
entropies add up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import Self

import torch
from torch import Generator, Tensor, nn

from operant.agents.actor import Actor
from operant.agents.critics import (
    POLICY_NAME,
    Critics,
    CriticState,
    check_bounds,
    critic_losses,
)
from operant.agents.exploration import UniformAtFirst
from operant.agents.modes import Modules
from operant.agents.off_policy import Due, OffPolicy, window_error
from operant.agents.optimizer import GradientStep, Hooks, Losses, Optimizer, OptimizerName
from operant.agents.target_entropy import TargetEntropy
from operant.agents.unroll import unroll
from operant.core import tree
from operant.core.config import AgentConfig, Count, CountOrZero, Fraction, Positive, Rate
from operant.core.experience import Arrays, Experience, HiddenState, Tensors
from operant.core.protocols import Network, Parts, ReplayMemory, Rows
from operant.core.schedule import Schedule
from operant.core.spaces import Shape, Space
from operant.memory.replay_settings import ReplayConfig
from operant.ops import policy
from operant.ops.distribution import POLICY, ActionDistribution, distribution_for, masks_of
from operant.ops.reparameterized import SquashedGaussian, noise_for, rsample

DUE: Due = frozenset({"value", "policy", "alpha", "target"})


@dataclass(frozen=True, kw_only=True)
class SACConfig(ReplayConfig, AgentConfig):
    """How SAC learns."""

    network_defaults = (("hidden", (256, 256)), ("activation", "relu"), ("init", "default"))

    lr: Rate = Schedule(3e-4)  # learning rate: a number, or linear(start, end, steps)
    optimizer: OptimizerName = "adam"  # optimizer, as in torch.optim
    gamma: Fraction = 0.99  # discount factor
    tau: Fraction = 0.005  # Polyak averaging of the target critics at each update
    replay_size: Count = 1_000_000  # size of the replay buffer, in environment steps
    learning_starts: CountOrZero = 100  # random exploration steps before the first update
    batch_size: Count = 256  # samples in a batch
    updates_per_step: Positive = 1.0  # gradient steps for each environment step
    alpha: Positive = 1.0  # entropy coefficient (temperature) at first
    learn_alpha: bool = True  # learn the entropy coefficient
    target_entropy: float | None = None  # none: -1 a continuous dimension, and discrete_entropy
    discrete_entropy: Fraction = 0.3  # target entropy of a discrete part, a share of log(allowed)
    n_step: Count = 1  # n of the n-step return
    sequence: Count = 16  # consecutive steps in a sample, for recurrent networks
    burn_in: CountOrZero = 0  # steps before those, which only bring the hidden state up to date


class SoftSelector(UniformAtFirst):
    """Uniformly random actions at first, then samples from the policy."""

    def __init__(
        self, action_space: dict[str, Space], distribution: ActionDistribution, random_steps: int
    ) -> None:
        super().__init__(action_space, distribution.outputs, random_steps)
        self.distribution, self.in_numpy = distribution, distribution.in_numpy

    def choose(self, out: Tensors, masks: Tensors, generator: Generator) -> Tensors:
        return self.distribution.sample(out, masks, generator)

    def exploit(self, out: Tensors, masks: Tensors) -> Tensors:
        return self.distribution.mode(out, masks)

    def choose_numpy(self, out: Arrays, generator: Generator, rows: Rows) -> Arrays:
        return self.distribution.sample_numpy(out, generator, rows, log_prob=False)[0]


class SAC(OffPolicy):
    """Maximises reward and entropy."""

    saved = (
        *("network", "critics", "log_alpha"),
        *("actor_optimizer", "critic_optimizer", "alpha_optimizer"),
        *("generator", "actor", "memory", "updates"),
    )
    config: SACConfig

    def __init__(
        self,
        network: Network,
        critic: Network,
        action_space: dict[str, Space],
        memory: ReplayMemory,
        config: SACConfig,
        seed: int,
        hooks: Hooks = Hooks(),
    ) -> None:
        self.network, self.memory, self.config = network, memory, config
        self.hooks, self.backup, self.names = hooks, hooks.backup, tuple(action_space)
        self.critics = Critics(critic, action_space, target=hooks.targets.get("value"))
        self.distribution = distribution_for(action_space, SquashedGaussian)
        self.outputs = None if hooks.draw else tuple(self.distribution.outputs)
        parts = self.distribution.parts
        self.continuous = ActionDistribution({k: parts[k] for k in self.critics.continuous})
        share = config.discrete_entropy
        self.target_entropy = TargetEntropy(action_space, config.target_entropy, share)
        selector = SoftSelector(action_space, self.distribution, config.learning_starts)
        state = CriticState(critic, self.critics.continuous) if network.recurrent else None
        self.actor = Actor(network, selector, seed, POLICY_NAME, state)
        # Of actions sampled to learn.
        self.generator = torch.Generator(self.actor.device).manual_seed(seed)
        self.log_alpha = log_alpha(config.alpha, self.actor.device)
        weights = {"policy": network.parameters(), "value": critic.parameters()}
        made = {
            role: Optimizer(of, config.lr, None, hooks.optimizers.get(role, config.optimizer))
            for role, of in {**weights, "alpha": [self.log_alpha]}.items()
        }
        self.actor_optimizer, self.critic_optimizer = made["policy"], made["value"]
        self.alpha_optimizer = made["alpha"]
        self.descents = (
            GradientStep("critic_loss", self.critic_loss, self.critic_optimizer),
            GradientStep("actor_loss", self.actor_loss, self.actor_optimizer),
        )
        self.updates, self.learned = 0, []
        self.windows(network.recurrent)

    @classmethod
    def create(cls, parts: Parts, config: SACConfig, seed: int) -> Self:
        """The agent with networks and a replay buffer of its own."""
        network = parts.network(cls.output_space(parts.spaces.action))
        critic = Critics.make(parts, members=2)
        memory = parts.replay(config, seed)
        return cls(network, critic, parts.spaces.action, memory, config, seed)

    @staticmethod
    def output_space(action_space: dict[str, Space]) -> dict[str, Shape]:
        """What the actor must give: the policy's parameters by action."""
        check_bounds(action_space, "SAC")
        return distribution_for(action_space, SquashedGaussian).outputs

    def initial_state(self, batch_size: int) -> HiddenState:
        """The recurrent state of `batch_size` fresh episodes, of actor and critics."""
        return self.critics.initial_state(self.network, batch_size)

    def due(self) -> Due:
        return DUE if self.config.learn_alpha else DUE - {"alpha"}

    def normalizing(self) -> tuple[Network, ...]:
        return self.network, self.critics.network

    def weights(self) -> tuple[str, ...]:
        return (*super().weights(), *(("log_alpha",) if self.config.learn_alpha else ()))

    def mode_dependent(self) -> Modules:
        return self.actor.mode_dependent + self.critics.mode_dependent

    def descend_on(self, batch: Experience, weight: Tensor | None, due: Due) -> Tensors:
        critic_step, actor_step = self.descents
        noise = self.noise(batch, self.length)
        metrics = self.descend(critic_step, batch, weight, noise, move="value" in due)
        noise = self.noise(batch, self.window)
        metrics |= self.descend(actor_step, batch, noise, move="policy" in due)
        if "alpha" in due:
            # The loss is log α (H − target entropy); its gradient needs no differentiation.
            target = metrics.get("target_entropy", self.target_entropy.unmasked())
            gradient = metrics["entropy"] - target
            metrics["ent_coef_loss"] = self.log_alpha.detach() * gradient
            self.alpha_optimizer.apply([gradient], self.steps_taken())
        if "target" in due:
            self.critics.target.polyak_update(self.config.tau)
        return {**metrics, "ent_coef": alpha_of(self.log_alpha)}

    def noise(self, batch: Experience, rows: int) -> Tensors:
        """Standard normals from which continuous actions are drawn in so many rows."""
        return noise_for(self.continuous, (rows, batch.reward.shape[1]), self.generator)

    def critic_loss(self, batch: Experience, weight: Tensor | None, noise: Tensors) -> Losses:
        """½ (Q(s, a) − y)² of each critic over the learned steps; `weight` `[B]` of each window."""
        target = self.targets(batch, noise)[slice(*self.learned_rows)].unsqueeze(-1)
        q, valid = self.critics.of_taken(batch, self.learned_rows), self.counted(batch)
        losses = critic_losses(q, target, valid, weight, self.hooks.criterion)
        td_error = (q.detach() - target).abs().mean(-1)
        return losses, {"td_error": window_error(td_error, valid)}

    def compute_loss(self, batch: Experience, weight: Tensor | None = None) -> Losses:
        """The critics' losses by name, for actions sampled now, and metrics."""
        return self.critic_loss(batch, weight, self.noise(batch, len(batch.reward)))

    @torch.no_grad()
    def targets(self, batch: Experience, noise: Tensors) -> Tensor:
        """n-step targets `[T, B]`: y = r + γ (min Q'(s', a') + α H(π(·|s'))), a' ~ π."""
        rows = (1, len(batch.reward) + 1)
        next_value, _ = self.soft_value(self.critics.target.network, batch, rows, noise)
        return self.n_step(batch, next_value)

    def actor_loss(self, batch: Experience, noise: Tensors) -> Losses:
        """−(min Q(s, a) + α H(π(·|s))), a ~ π, over the learned steps; the mean entropy."""
        rows = self.learned_rows
        soft, entropy = self.soft_value(self.critics.network, batch, rows, noise)
        valid = self.counted(batch)
        losses = {"actor": -policy.masked_mean(soft, valid)}
        masks = masks_of(tree.index(batch.observation, slice(*rows)), self.names)
        # A metric, so that under data-parallel training it is the mean over ranks, as entropy is.
        target = self.target_entropy.masked(masks, valid)
        return losses, {"entropy": policy.masked_mean(entropy, valid), **target}

    def soft_value(
        self, critic: Network, batch: Experience, rows: tuple[int, int], noise: Tensors
    ) -> tuple[Tensor, Tensor]:
        """Soft state values of these rows under the policy, and its entropy."""
        masks = masks_of(tree.index(batch.observation, slice(*rows)), self.names)
        out = unroll(self.network, batch, self.outputs, rows, POLICY_NAME)
        action, entropy = self.sample_actions(out, masks, noise)
        q = self.critics.outputs(critic, batch, action, rows)
        logits = {name: out[POLICY + name] for name in self.critics.choices}
        soft = self.critics.lowest_expected(q, logits, masks)
        return soft + alpha_of(self.log_alpha) * entropy, entropy

    def sample_actions(
        self, out: Tensors, masks: Tensors, noise: Tensors
    ) -> tuple[Tensors, Tensor]:
        """Continuous actions that carry a gradient, and the entropy of the whole policy."""
        if self.hooks.draw is not None:
            return self.hooks.draw(out)
        parts = self.distribution.parts
        entropy = [parts[k].entropy(out[POLICY + k], masks.get(k)) for k in self.critics.choices]
        action: Tensors = {}
        if self.continuous.parts:
            action, log_prob = rsample(self.continuous, out, noise)
            entropy.append(-log_prob)
        return action, reduce(torch.add, entropy)


def log_alpha(alpha: float, device: torch.device | None = None) -> nn.Parameter:
    """The parameter behind an entropy coefficient, which stays positive: log α."""
    return nn.Parameter(torch.tensor(math.log(alpha), device=device))


def alpha_of(log_alpha: Tensor) -> Tensor:
    """The entropy coefficient α, without a gradient."""
    return log_alpha.detach().exp()
