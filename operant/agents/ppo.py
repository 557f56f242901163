"""Proximal policy optimisation with a clipped surrogate (PPO; arXiv:1707.06347)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from operant.agents.actor import Actor, PolicySelector
from operant.agents.advantages import advantages, rollout_metrics
from operant.agents.agent import AgentBase
from operant.agents.optimizer import GradientStep, Hooks, Losses, Optimizer, OptimizerName
from operant.agents.unroll import evaluate_actions, passes
from operant.core.config import AgentConfig, Count, Fraction, NotNegative, Positive, Rate
from operant.core.experience import Metrics, Tensors
from operant.core.protocols import Network, Parts, RolloutMemory
from operant.core.schedule import Schedule
from operant.core.spaces import Shape, Space
from operant.ops import policy
from operant.ops.distribution import distribution_for
from operant.ops.value import value_error


@dataclass(frozen=True, kw_only=True)
class PPOConfig(AgentConfig):
    """How PPO learns."""

    network_defaults = (("separate", None),)

    length: Count = 256  # rollout length: environment steps of each environment between updates
    lr: Rate = Schedule(3e-4)  # learning rate: a number, or linear(start, end, steps)
    optimizer: OptimizerName = "adam"  # optimizer, as in torch.optim
    gamma: Fraction = 0.99  # discount factor
    lam: Fraction = 0.95  # GAE lambda: trade-off of bias and variance of the advantages
    value_coef: NotNegative = 1.0  # coefficient of the value loss, half the squared error
    entropy_coef: NotNegative = 0.0  # coefficient of the entropy bonus
    max_grad_norm: NotNegative = 0.5  # gradient clipping: the largest norm; 0: no clipping
    normalize_advantage: bool = True  # normalise the advantages of each minibatch
    clip: Positive = 0.2  # clip range of the probability ratio
    epochs: Count = 10  # passes over each rollout
    minibatch: Count = 64  # environment steps in a minibatch
    target_kl: NotNegative = 0.0  # stop the epochs once the KL divergence is 1.5 times this; 0: no

    def gradient_steps(self, steps: int, num_envs: int) -> int:
        rollout = self.length * num_envs
        return steps // rollout * self.epochs * max(1, round(rollout / self.minibatch))

    def gradient_rows(self, num_envs: int) -> int:
        return self.minibatch


class PPO(AgentBase):
    """Learns from each rollout in several epochs, while the policy stays near."""

    saved = ("network", "optimizer", "generator", "actor", "memory", "steps", "updates")
    any_batch_size = True  # rows in which an environment only reset are left out

    def __init__(
        self,
        network: Network,
        action_space: dict[str, Space],
        memory: RolloutMemory,
        config: PPOConfig,
        seed: int,
        hooks: Hooks = Hooks(),
    ) -> None:
        self.network, self.memory, self.config = network, memory, config
        self.distribution = hooks.distribution or distribution_for(action_space, free_std=True)
        self.criterion = hooks.criterion or value_error
        self.actor = Actor(network, PolicySelector(self.distribution), seed)
        self.generator = torch.Generator(self.actor.device).manual_seed(seed)  # of minibatches
        rule = hooks.optimizers.get("all", config.optimizer)
        parameters = network.parameters()
        self.optimizer = Optimizer(parameters, config.lr, config.max_grad_norm, rule, eps=1e-5)
        self.descents = (GradientStep("loss", self.compute_loss, self.optimizer),)
        self.steps = self.updates = 0  # environment steps learned from, gradient steps taken
        self.learned = []

    @classmethod
    def create(cls, parts: Parts, config: PPOConfig, seed: int) -> Self:
        """The agent with a network and a rollout buffer of its own."""
        action_space = parts.spaces.action
        network = parts.network(cls.output_space(action_space))
        return cls(network, action_space, parts.rollout(config.length), config, seed)

    @staticmethod
    def output_space(action_space: dict[str, Space]) -> dict[str, Shape]:
        """What the network must give: a value, and the policy's parameters by action."""
        return {"value": (1,), **distribution_for(action_space, free_std=True).outputs}

    def steps_taken(self) -> int:
        return self.steps

    def update(self) -> Metrics:
        """Learn from the rollout in memory, if there is a whole one, and clear it."""
        if not self.memory.ready():
            return {}
        batch = advantages(self.network, self.memory.read(), self.config.gamma, self.config.lam)
        self.learned = self.learn(batch)
        metrics = rollout_metrics(self.learned, batch)
        metrics |= {"n_updates": self.updates, "learning_rate": self.optimizer.lr(self.steps)}
        self.network.observe(batch.observation, batch.valid)  # last: the batch was acted on before
        self.steps += int(batch.valid.sum())
        self.memory.clear()
        return metrics

    def learn(self, batch: Any) -> list[Tensors]:
        """`epochs` passes over the batch in minibatches; metrics of each gradient step."""
        config, recurrent = self.config, self.network.recurrent
        epochs = passes(batch, config.epochs, config.minibatch, recurrent, self.generator)
        learned: list[Tensors] = []
        for minibatches in epochs:
            for minibatch, valid in minibatches:
                learned.append(self.descend(self.descents[0], minibatch, valid))
                self.updates += 1
            if not learned:
                break  # no row is valid, in this epoch or another
            if config.target_kl and float(learned[-1]["approx_kl"]) > 1.5 * config.target_kl:
                break
        return learned

    def compute_loss(self, batch: Any, valid: Tensor | None = None) -> Losses:
        """Weighted losses by name, whose sum is minimised, and metrics."""
        log_prob, entropy, value = evaluate_actions(self.network, self.distribution, batch)
        log_ratio, clip = log_prob - batch.log_prob, self.config.clip
        advantage = batch.advantage
        if self.config.normalize_advantage:
            advantage = policy.standardize(advantage, valid)
        gain = policy.clipped_surrogate(log_ratio, advantage, clip)
        losses, metrics = policy.actor_critic_losses(
            policy=-policy.masked_mean(gain, valid),
            value=policy.reduced(self.criterion(value, batch.target), valid),
            entropy=-policy.masked_mean(entropy, valid),
            coefficients=(self.config.value_coef, self.config.entropy_coef),
        )
        with torch.no_grad():
            metrics["approx_kl"] = policy.masked_mean(policy.kl_estimate(log_ratio), valid)
            metrics["clip_fraction"] = policy.masked_mean(
                policy.clip_fraction(log_ratio, clip), valid
            )
        return losses, metrics
