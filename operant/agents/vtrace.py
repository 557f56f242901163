"""Actor–critic with V-trace, the agent of IMPALA (arXiv:1802.01561).

What an older policy collected is weighed by how likely the policy of now would do the same, so that
learning need not wait for samplers that run behind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from operant.agents.actor import Actor, PolicySelector
from operant.agents.advantages import batch_of, values
from operant.agents.agent import AgentBase
from operant.agents.optimizer import (
    GradientStep,
    Hooks,
    Losses,
    Optimizer,
    OptimizerName,
    averaged,
)
from operant.agents.unroll import evaluate_actions, unroll
from operant.core import tree
from operant.core.config import AgentConfig, Count, Fraction, NotNegative, Positive, Rate
from operant.core.experience import Experience, Metrics
from operant.core.protocols import Network, Parts, RolloutMemory
from operant.core.schedule import Schedule
from operant.core.spaces import Shape, Space
from operant.ops import policy, returns
from operant.ops.distribution import distribution_for, masks_of
from operant.ops.value import value_error


@dataclass(frozen=True, kw_only=True)
class VTraceConfig(AgentConfig):
    """How V-trace learns."""

    network_defaults = (("separate", None),)

    length: Count = 20  # rollout length: environment steps of each environment between updates
    lr: Rate = Schedule(7e-4)  # learning rate: a number, or linear(start, end, steps)
    optimizer: OptimizerName = "rmsprop"  # optimizer, as in torch.optim
    gamma: Fraction = 0.99  # discount factor
    lam: Fraction = 1.0  # trace decay; 1: as in the paper, lower: less variance, more bias
    rho: Positive = 1.0  # largest importance weight of an error; decides whose value is learned
    c: Positive = 1.0  # largest importance weight by which errors are traced back
    rho_policy: Positive = 1.0  # largest importance weight of the policy gradient
    value_coef: NotNegative = 0.5  # coefficient of the value loss, half the squared error
    entropy_coef: NotNegative = 0.01  # coefficient of the entropy bonus
    max_grad_norm: NotNegative = 40.0  # gradient clipping: the largest norm; 0: no clipping
    normalize_advantage: bool = False  # normalise the advantages of a batch


class ActorCriticVTrace(AgentBase):
    """Takes one gradient step on each rollout, also on one that an older policy collected."""

    saved = ("network", "optimizer", "actor", "memory", "steps", "updates")
    any_batch_size = True

    def __init__(
        self,
        network: Network,
        action_space: dict[str, Space],
        memory: RolloutMemory,
        config: VTraceConfig,
        seed: int,
        hooks: Hooks = Hooks(),
    ) -> None:
        self.network, self.memory, self.config = network, memory, config
        self.distribution = hooks.distribution or distribution_for(action_space, free_std=True)
        self.criterion = hooks.criterion or value_error
        self.actor = Actor(network, PolicySelector(self.distribution), seed)
        rule = hooks.optimizers.get("all", config.optimizer)
        clip = config.max_grad_norm
        self.optimizer = Optimizer(network.parameters(), config.lr, clip, rule, eps=1e-5)
        self.descents = (GradientStep("loss", self.compute_loss, self.optimizer),)
        self.steps, self.updates = 0, 0  # environment steps learned from, gradient steps taken
        self.learned = []

    @classmethod
    def create(cls, parts: Parts, config: VTraceConfig, seed: int) -> Self:
        """The agent with a network and a rollout buffer of its own."""
        space, memory = parts.spaces.action, parts.rollout(config.length)
        return cls(parts.network(cls.output_space(space)), space, memory, config, seed)

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
        batch = self.prepare(self.memory.read())
        self.learned = [self.descend(self.descents[0], batch, batch.valid)]
        self.updates += 1
        metrics = averaged(self.learned)
        metrics |= {"n_updates": self.updates, "learning_rate": self.optimizer.lr(self.steps)}
        self.network.observe(batch.observation, batch.valid)  # last: the batch was acted on before
        self.steps += int(batch.valid.sum())
        self.memory.clear()
        return metrics

    @torch.no_grad()
    def prepare(self, chunk: Experience) -> Any:
        """V-trace targets of the value, and advantages times their importance weights: a Batch.

        Values are those of the network as it is; acting may have asked an older one.
        """
        config, known = self.config, {"log_prob": chunk.memo["log_prob"]}
        chunk = tree.to(chunk._replace(memo=known), self.actor.device)
        value, next_value = values(self.network, chunk)
        batch = batch_of(chunk, torch.zeros_like(value), value)
        late = self.distribution.late(batch.action)
        out = unroll(self.network, batch, tuple(self.distribution.outputs), late=late)
        masks = masks_of(batch.observation, self.distribution.parts)
        log_ratio = self.distribution.log_prob(out, batch.action, masks) - batch.log_prob
        discount, trace = config.gamma * ~chunk.terminated, config.lam * ~chunk.cut
        given = log_ratio, chunk.reward, value, next_value, discount, trace
        target, q = returns.vtrace(*given, config.rho, config.c)
        weight = log_ratio.exp().clamp(max=config.rho_policy)
        return batch._replace(advantage=weight * (q - value), target=target)

    def compute_loss(self, batch: Any, valid: Tensor | None = None) -> Losses:
        """Weighted losses by name, whose sum is minimised, and metrics."""
        log_prob, entropy, value = evaluate_actions(self.network, self.distribution, batch)
        advantage = batch.advantage
        if self.config.normalize_advantage:
            advantage = policy.standardize(advantage, valid)
        losses, metrics = policy.actor_critic_losses(
            policy=policy.masked_mean(policy.policy_gradient(log_prob, advantage), valid),
            value=policy.reduced(self.criterion(value, batch.target), valid),
            entropy=-policy.masked_mean(entropy, valid),
            coefficients=(self.config.value_coef, self.config.entropy_coef),
        )
        with torch.no_grad():
            apart = policy.kl_estimate(log_prob - batch.log_prob)  # of the policy that acted
            metrics["approx_kl"] = policy.masked_mean(apart, valid)
            metrics["explained_variance"] = policy.explained_variance(value, batch.target, valid)
        return losses, metrics


VTrace = ActorCriticVTrace
