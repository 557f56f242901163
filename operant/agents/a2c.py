"""Advantage actor–critic, synchronous (A2C; arXiv:1602.01783, algorithm S3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from torch import Tensor

from operant.agents.actor import Actor, PolicySelector
from operant.agents.advantages import advantages, rollout_metrics
from operant.agents.agent import AgentBase
from operant.agents.optimizer import GradientStep, Hooks, Losses, Optimizer, OptimizerName
from operant.agents.unroll import evaluate_actions
from operant.core.config import AgentConfig, Count, Fraction, NotNegative, Rate
from operant.core.experience import Metrics
from operant.core.protocols import Network, Parts, RolloutMemory
from operant.core.schedule import Schedule
from operant.core.spaces import Shape, Space
from operant.ops import policy
from operant.ops.distribution import distribution_for
from operant.ops.value import value_error


@dataclass(frozen=True, kw_only=True)
class A2CConfig(AgentConfig):
    """How A2C learns."""

    network_defaults = (("separate", None),)

    length: Count = 5  # rollout length: environment steps of each environment between updates
    lr: Rate = Schedule(7e-4)  # learning rate: a number, or linear(start, end, steps)
    optimizer: OptimizerName = "rmsprop"  # optimizer, as in torch.optim
    gamma: Fraction = 0.99  # discount factor
    lam: Fraction = 1.0  # GAE lambda; 1: the n-step return less the value
    value_coef: NotNegative = 1.0  # coefficient of the value loss, half the squared error
    entropy_coef: NotNegative = 0.0  # coefficient of the entropy bonus
    max_grad_norm: NotNegative = 0.5  # gradient clipping: the largest norm; 0: no clipping
    normalize_advantage: bool = False  # normalise the advantages of a batch


class ActorCritic(AgentBase):
    """Takes one gradient step on each rollout, then forgets it."""

    saved = ("network", "optimizer", "actor", "memory", "steps", "updates")
    any_batch_size = True

    def __init__(
        self,
        network: Network,
        action_space: dict[str, Space],
        memory: RolloutMemory,
        config: A2CConfig,
        seed: int,
        hooks: Hooks = Hooks(),
    ) -> None:
        self.network, self.memory, self.config = network, memory, config
        self.distribution = hooks.distribution or distribution_for(action_space, free_std=True)
        self.criterion = hooks.criterion or value_error
        self.actor = Actor(network, PolicySelector(self.distribution), seed)
        rule = hooks.optimizers.get("all", config.optimizer)
        weights, norm = network.parameters(), config.max_grad_norm
        self.optimizer = Optimizer(weights, config.lr, norm, rule, eps=1e-5)
        self.descents = (GradientStep("loss", self.compute_loss, self.optimizer),)
        self.steps, self.updates = 0, 0  # environment steps learned from, gradient steps taken
        self.learned = []

    @classmethod
    def create(cls, parts: Parts, config: A2CConfig, seed: int) -> Self:
        """The agent with a network and a rollout buffer of its own."""
        network = parts.network(cls.output_space(parts.spaces.action))
        return cls(network, parts.spaces.action, parts.rollout(config.length), config, seed)

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
        self.learned = [self.descend(self.descents[0], batch, batch.valid)]
        self.updates += 1
        metrics = rollout_metrics(self.learned, batch)
        metrics |= {"learning_rate": self.optimizer.lr(self.steps), "n_updates": self.updates}
        self.steps += int(batch.valid.sum())
        self.network.observe(batch.observation, batch.valid)  # last: the batch was acted on before
        self.memory.clear()
        return metrics

    def compute_loss(self, batch: Any, valid: Tensor | None = None) -> Losses:
        """Weighted losses by name, whose sum is minimised, and metrics."""
        log_prob, entropy, value = evaluate_actions(self.network, self.distribution, batch)
        advantage = batch.advantage
        if self.config.normalize_advantage:
            advantage = policy.standardize(advantage, valid)
        return policy.actor_critic_losses(
            policy=policy.masked_mean(policy.policy_gradient(log_prob, advantage), valid),
            value=policy.reduced(self.criterion(value, batch.target), valid),
            entropy=-policy.masked_mean(entropy, valid),
            coefficients=(self.config.value_coef, self.config.entropy_coef),
        )


A2C = ActorCritic
