"""Actor–critic with experience replay (ACER; arXiv:1611.01224), for one discrete action.

Learns from new experience and, several times more often, from windows of a replay buffer: Q-values
by Retrace, the policy by truncated importance sampling with bias correction, within a trust region
around an average of past policies. `ACERVTrace` has V-trace in place of Retrace.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from gymnasium.spaces import Discrete
from torch import Generator, Tensor

from operant.agents.actor import Actor, Explored, PolicySelector
from operant.agents.agent import AgentBase
from operant.agents.optimizer import (
    GradientStep,
    Hooks,
    Losses,
    Optimizer,
    OptimizerName,
    averaged,
)
from operant.agents.target import Target
from operant.agents.unroll import unroll
from operant.core import tree
from operant.core.config import AgentConfig, Count, Fraction, NotNegative, Positive, Rate
from operant.core.errors import UsageError
from operant.core.experience import Arrays, Experience, Metrics, Tensors
from operant.core.protocols import Network, Parts, ReplayMemory, Rows
from operant.core.schedule import Schedule
from operant.core.seeds import seed_for
from operant.core.spaces import Shape, Space
from operant.memory.replay_settings import UniformReplayConfig
from operant.ops import policy, returns, value
from operant.ops.categorical import masked_logits
from operant.ops.distribution import POLICY, distribution_for, masks_of
from operant.ops.value import Q


@dataclass(frozen=True, kw_only=True)
class ACERConfig(UniformReplayConfig, AgentConfig):
    """How ACER learns."""

    network_defaults = (("separate", None),)

    length: Count = 20  # steps in a window: of each environment between updates, and of a sample
    lr: Rate = Schedule(7e-4)  # learning rate: a number, or linear(start, end, steps)
    optimizer: OptimizerName = "adam"  # optimizer, as in torch.optim
    gamma: Fraction = 0.99  # discount factor
    lam: Fraction = 0.9  # lambda of the targets; 1: as in the paper, with more variance
    replay_size: Count = 50_000  # size of the replay buffer, in environment steps
    batch_size: Count = 16  # windows in a batch
    replay_ratio: NotNegative = 4.0  # updates from replay for each one from new steps, on average
    truncation: Positive = 10.0  # bound of importance weights; what it cuts off is corrected
    trust: NotNegative = 1.0  # trust region: bound of the KL divergence's slope; 0: none
    tau: Fraction = 0.01  # Polyak averaging of the average policy at each update
    value_coef: NotNegative = 0.5  # coefficient of the value loss, half the squared error
    entropy_coef: NotNegative = 0.01  # coefficient of the entropy bonus
    max_grad_norm: NotNegative = 10.0  # gradient clipping: the largest norm; 0: no clipping

    def gradient_steps(self, steps: int, num_envs: int) -> int:
        return int(super().gradient_steps(steps, num_envs) * (1 + self.replay_ratio))

    def gradient_rows(self, num_envs: int) -> int:
        return self.length * self.batch_size


@dataclass(frozen=True, kw_only=True)
class ACERVTraceConfig(ACERConfig):
    """How ACER learns with the targets of V-trace."""

    rho: Positive = 1.0  # V-trace: bound of the importance weight of a TD error
    c: Positive = 1.0  # V-trace: bound of the importance weights that carry later errors back


class BehaviorSelector(PolicySelector):
    """Samples from the policy, and leaves log-probabilities of all actions behind."""

    def memo(self, out: Tensors, action: Tensors, masks: Tensors) -> Tensors:
        ((name, _),) = action.items()
        return {"logits": masked_logits(out[POLICY + name], masks.get(name)).log_softmax(-1)}

    def explore_numpy(self, out: Arrays, generator: Generator, rows: Rows, acted: int) -> Explored:
        action, _ = self.distribution.sample_numpy(out, generator, rows, log_prob=False)
        ((name, _),) = action.items()
        params = out[POLICY + name]
        return action, {"logits": params - np.logaddexp.reduce(params, 1, keepdims=True)}


class ACER(AgentBase):
    """Takes one gradient step on the newest steps, then some on windows from the replay buffer."""

    saved = (
        *("network", "average", "optimizer", "random", "actor", "memory"),
        *("rows_learned", "updates"),
    )
    any_batch_size = True

    def __init__(
        self,
        network: Network,
        action_space: dict[str, Space],
        memory: ReplayMemory,
        config: ACERConfig,
        seed: int,
        hooks: Hooks = Hooks(),
    ) -> None:
        self.network, self.memory, self.config = network, memory, config
        self.distribution = distribution_for(action_space)
        (self.name,) = action_space
        self.average = Target(network)
        self.actor = Actor(network, BehaviorSelector(self.distribution), seed)
        # Of how often to learn from replay.
        self.random = np.random.default_rng(seed_for(seed, "replay ratio"))
        rule = hooks.optimizers.get("all", config.optimizer)
        weights, norm = network.parameters(), config.max_grad_norm
        self.optimizer = Optimizer(weights, config.lr, norm, rule, eps=1e-5)
        self.descents = (GradientStep("loss", self.compute_loss, self.optimizer),)
        self.rows_learned, self.updates, self.learned = 0, 0, []

    @classmethod
    def create(cls, parts: Parts, config: ACERConfig, seed: int) -> Self:
        """The agent with a network and a replay buffer of its own."""
        network = parts.network(cls.output_space(parts.spaces.action))
        memory = parts.replay(config, seed)
        return cls(network, parts.spaces.action, memory, config, seed)

    @staticmethod
    def output_space(action_space: dict[str, Space]) -> dict[str, Shape]:
        """What the network must give: the policy's logits and a Q-value for each choice."""
        name, space = next(iter(action_space.items()))
        if len(action_space) > 1 or not isinstance(space, Discrete):
            given = (
                f"action {name!r} is {space}"
                if len(action_space) == 1
                else (f"actions {', '.join(map(repr, action_space))} are several")
            )
            raise UsageError(
                f"{given}: ACER learns the Q-value of each choice of one Discrete action, over "
                f"which it takes expectations; use ppo, or list all choices as one Discrete in a "
                f"wrapper"
            )
        return {POLICY + name: (int(space.n),), Q + name: (int(space.n),)}

    def update(self) -> Metrics:
        """Learn from the last `length` rows of each environment, if new, then from replay."""
        length, self.learned = self.config.length, []
        if self.memory.rows - self.rows_learned < length:
            return {}
        self.rows_learned = self.memory.rows
        newest = self.learn_from(self.memory.newest(length))
        if self.memory.ready() and self.memory.holds(length):
            for _ in range(self.random.poisson(self.config.replay_ratio)):
                self.learn_from(self.memory.sample(self.config.batch_size, length).experience)
        seen = tree.index(newest.observation, slice(0, length))
        self.network.observe(seen, newest.valid)  # last: they were acted on before
        lr = self.optimizer.lr(self.steps_taken())
        return averaged(self.learned) | {"learning_rate": lr, "n_updates": self.updates}

    def learn_from(self, batch: Experience) -> Experience:
        """One gradient step on windows `[T, B]`, after which the average policy moves."""
        batch = tree.to(batch, self.actor.device)
        self.learned.append(self.descend(self.descents[0], batch))
        self.average.polyak_update(self.config.tau)
        self.updates += 1
        return batch

    def compute_loss(self, batch: Experience) -> Losses:
        """Weighted losses by name, whose sum is minimised, and metrics.

        The policy's loss is −Σ_a z(a) π(a|s); no gradient flows into z.
        """
        out, steps = unroll(self.network, batch, None), slice(0, len(batch.reward))
        log_probs, q_values = self.log_probs(out, batch), out[Q + self.name]
        log_prob, q = log_probs[steps], _of(batch.action[self.name], q_values[steps])
        target, gradient = self.learning_signal(batch, log_probs, q_values)
        entropy = self.distribution.parts[self.name].entropy(log_prob, self.mask(batch, steps))
        losses, metrics = policy.actor_critic_losses(
            policy=-policy.masked_mean((gradient * log_prob.exp()).sum(-1), batch.valid),
            value=policy.masked_mean(value.squared(q - target), batch.valid),
            entropy=-policy.masked_mean(entropy, batch.valid),
            coefficients=(self.config.value_coef, self.config.entropy_coef),
        )
        return losses, metrics | {"q_values": policy.masked_mean(q, batch.valid)}

    @torch.no_grad()
    def learning_signal(
        self, batch: Experience, log_probs: Tensor, q_values: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Targets of the actions taken `[T, B]`, and z, the gradient by probability `[T, B, A]`."""
        state_value = (log_probs.exp() * q_values).sum(-1)
        log_prob, q, now = log_probs[:-1], q_values[:-1], state_value[:-1]
        action = batch.action[self.name]
        # Where nothing was decided the ratio is one, so that every number is finite.
        behavior = torch.where(batch.valid.unsqueeze(-1), batch.memo["logits"], log_prob)
        log_ratio = _of(action, log_prob - behavior)
        target = self.targets(batch, log_ratio, _of(action, q), state_value)
        better, bound = q - now.unsqueeze(-1), self.config.truncation
        gradient = policy.truncated_gradient(
            log_prob, behavior, action, target - now, better, bound
        )
        if not self.config.trust:
            return target, gradient
        out = unroll(self.average.network, batch, (POLICY + self.name,), (0, len(batch.reward)))
        average = self.log_probs(out, batch)
        return target, policy.trust_region(gradient, log_prob, average, self.config.trust)

    def targets(
        self, batch: Experience, log_ratio: Tensor, q: Tensor, state_value: Tensor
    ) -> Tensor:
        """Retrace targets `[T, B]` of the actions taken; `state_value` has one row more."""
        trace, discount = self.config.lam * ~batch.cut, self.config.gamma * ~batch.terminated
        return returns.retrace(log_ratio, batch.reward, q, state_value[1:], discount, trace)

    def log_probs(self, out: Tensors, batch: Experience) -> Tensor:
        """Log-probabilities of all actions in the first rows of a batch."""
        logits = out[POLICY + self.name]
        return masked_logits(logits, self.mask(batch, slice(0, len(logits)))).log_softmax(-1)

    def mask(self, batch: Experience, rows: slice) -> Tensor | None:
        """The action mask of these rows, if there is one."""
        return masks_of(tree.index(batch.observation, rows), (self.name,)).get(self.name)


class ACERVTrace(ACER):
    """ACER whose targets are V-trace's: one reward, then v (arXiv:1802.01561, eq. 1).

    Their fixed point is the value of a policy between the one that acted and its own, and becomes
    that of its own as `rho` grows, where Retrace's always is; their variance grows with it.
    """

    config: ACERVTraceConfig

    def targets(
        self, batch: Experience, log_ratio: Tensor, q: Tensor, state_value: Tensor
    ) -> Tensor:
        """q_t = r_t + γ v_{t+1} `[T, B]` of the actions taken."""
        trace, discount = self.config.lam * ~batch.cut, self.config.gamma * ~batch.terminated
        now, after, bounds = state_value[:-1], state_value[1:], (self.config.rho, self.config.c)
        return returns.vtrace(log_ratio, batch.reward, now, after, discount, trace, *bounds)[1]


def _of(action: Tensor, x: Tensor) -> Tensor:
    """The numbers of `x` `[..., A]` that belong to the actions taken."""
    return x.gather(-1, action.unsqueeze(-1)).squeeze(-1)
