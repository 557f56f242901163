"""Advantage actor–critic, synchronous (A2C; arXiv:1602.01783, algorithm S3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Generator, Tensor

from operant.agents.actor import Actor
from operant.agents.compiling import one_program
from operant.agents.optimize import Gradients, Optimizer, averaged, detached, total
from operant.agents.sequence import unroll, values_of
from operant.core import tree
from operant.core.config import AgentConfig, Count, Fraction, NotNegative
from operant.core.experience import (
    Arrays,
    Decision,
    EnvStep,
    Experience,
    HiddenState,
    Memo,
    Metrics,
    Tensors,
)
from operant.core.namedarraytuple import namedarraytuple
from operant.core.protocols import Network, Parts, RolloutMemory
from operant.core.schedule import Schedule
from operant.core.spaces import Shape, Space
from operant.core.state import restore, state_of
from operant.ops import few, policy, returns, value
from operant.ops.distribution import ActionDistribution, distribution_for, masks_of


@dataclass(frozen=True, kw_only=True)
class ActorCriticConfig(AgentConfig):
    """How A2C learns."""

    length: Count = 5  # steps of every environment behind one update
    lr: Schedule = Schedule(7e-4)  # Adam's learning rate: a number, or linear(start, end, steps)
    gamma: Fraction = 0.99  # worth of a reward one step away
    lam: Fraction = 1.0  # trust in rewards seen over values guessed; 1 is the n-step return
    value_coef: NotNegative = 1.0  # weight of the value loss, half the squared error
    entropy_coef: NotNegative = 0.0  # weight of the entropy bonus
    max_grad_norm: NotNegative = 0.5  # bound on the gradient's norm, 0 for none
    normalize_advantage: bool = False  # bring advantages to mean zero and deviation one


Slope = Callable[[Any, Tensor | None], tuple[Tensors, Gradients]]
Batch = namedarraytuple(
    "Batch", "observation hidden_state first action log_prob advantage target valid"
)


@dataclass(frozen=True)
class PolicyChoice:
    """Samples from the policy, or takes its likeliest action."""

    distribution: ActionDistribution

    @property
    def drawable(self) -> bool:
        """Whether it can be drawn in NumPy."""
        return few.drawable(self.distribution)

    def explore(self, out: Tensors, masks: Tensors, generator: Generator, acted: int) -> Tensors:
        """Draw from the policy."""
        return self.distribution.sample(out, masks, generator)

    def exploit(self, out: Tensors, masks: Tensors) -> Tensors:
        """The policy's mode."""
        return self.distribution.mode(out, masks)

    def memo(self, out: Tensors, action: Tensors, masks: Tensors) -> Tensors:
        """How likely the action was, which learning compares with, and the value if it is there."""
        memo = {"log_prob": self.distribution.log_prob(out, action, masks)}
        return memo | ({"value": out["value"].squeeze(-1)} if "value" in out else {})

    def explore_few(
        self, out: Arrays, generator: Generator, rows: tuple[int, int, int], acted: int
    ) -> tuple[Arrays, Arrays]:
        """`explore` and `memo` for a few rows."""
        action, log_prob = few.sample(self.distribution, out, generator, rows)
        value = {"value": out["value"][:, 0]} if "value" in out else {}
        return action, {"log_prob": log_prob, **value}


class ActorCritic:
    """Learns a policy and a value from each chunk once, then forgets it."""

    eps = 1e-5  # Adam's epsilon

    def __init__(
        self,
        network: Network,
        action_space: dict[str, Space],
        memory: RolloutMemory,
        config: ActorCriticConfig,
        seed: int,
    ) -> None:
        self.network, self.memory, self.config = network, memory, config
        self.device = next(network.parameters()).device
        self.distribution = distribution_for(action_space)
        self.names = tuple(action_space)
        self.actor = Actor(network, PolicyChoice(self.distribution), self.names, seed)
        self.generator = torch.Generator(self.device).manual_seed(seed)  # for learning
        self.optimizer = Optimizer(network.parameters(), config.lr, config.max_grad_norm, self.eps)
        self.steps = 0  # environment steps learned from
        self.learned: list[Tensors] = []  # metrics of each gradient step of the last update
        self._slope: Slope = self.slope

    @classmethod
    def create(cls, parts: Parts, config: Any, seed: int) -> Self:
        """The agent with a network and a memory of its own."""
        spaces = parts.spaces
        network = parts.network(cls.output_space(spaces.action))
        return cls(network, spaces.action, parts.rollout(config.length), config, seed)

    @staticmethod
    def output_space(action_space: dict[str, Space]) -> dict[str, Shape]:
        """What the network must give: the policy's parameters by action, and a value."""
        return {"value": (1,), **distribution_for(action_space).param_shapes}

    @property
    def updates(self) -> int:
        """Gradient steps so far."""
        return self.optimizer.count

    def initial_state(self, batch_size: int) -> HiddenState:
        """The recurrent state of `batch_size` fresh episodes."""
        return self.network.initial_state(batch_size)

    def act(
        self, observation: Tensors, hidden_state: HiddenState | None = None, explore: bool = True
    ) -> Decision:
        """Actions `[B, ...]` by name, sampled or most likely, and their log-probability."""
        return self.actor.act(observation, hidden_state, explore)

    def observe(self, observation: Arrays, action: Tensors, memo: Memo, step: EnvStep) -> None:
        """In a loop of your own: remember what was seen, decided and answered."""
        self.memory.write(observation, action, memo, step)

    def update(self) -> Metrics:
        """Learn from the chunk in memory, if there is a whole one, and clear it."""
        if not self.memory.ready():
            return {}
        batch = self.prepare(self.memory.read())
        self.learned = self.learn(batch)
        metrics = averaged(self.learned)
        metrics["explained_variance"] = float(
            policy.explained_variance(batch.target - batch.advantage, batch.target, batch.valid)
        )
        metrics["learning_rate"] = self.optimizer.lr(self.steps)
        metrics["n_updates"] = self.optimizer.count
        self.steps += int(batch.valid.sum())
        self.network.observe(batch.observation, batch.valid)  # last: the batch was acted on before
        self.memory.clear()
        return metrics

    @torch.no_grad()
    def prepare(self, chunk: Experience) -> Any:
        """Advantages and value targets beside what they belong to, `[T, B]`."""
        chunk = tree.to(chunk, self.device)
        value_now, next_value = values_of(self.network, chunk)
        discount = self.config.gamma * ~chunk.terminated
        trace = self.config.lam * ~chunk.cut
        advantage = returns.gae(chunk.reward, value_now, next_value, discount, trace)
        steps = len(chunk.reward)
        return Batch(
            observation=tree.index(chunk.observation, slice(0, steps)),
            hidden_state=tree.index(dict(chunk.hidden_state), slice(0, steps)),
            first=chunk.first[:steps],
            action=chunk.action,
            log_prob=chunk.memo["log_prob"],
            advantage=advantage,
            target=advantage + value_now,
            valid=chunk.valid,
        )

    def learn(self, batch: Any) -> list[Tensors]:
        """One gradient step on the whole batch; its metrics."""
        return [self.descend(batch, batch.valid)]

    def descend(self, batch: Any, valid: Tensor | None) -> Tensors:
        """One gradient step; its metrics."""
        metrics, gradients = self._slope(batch, valid)
        self.optimizer.follow(gradients, self.steps)
        return metrics

    def slope(self, batch: Any, valid: Tensor | None) -> tuple[Tensors, Gradients]:
        """Metrics, and the bounded gradient of the loss."""
        losses, metrics = self.compute_loss(batch, valid)
        loss = total(losses)
        gradients, norm = self.optimizer.gradient(loss)
        return detached({**metrics, "loss": loss, "grad_norm": norm}), gradients

    def compile(self) -> None:
        """Learn by machine code; the first update then takes up to half a minute longer."""
        # Batches differ in size by the steps that only reset.
        self._slope = one_program(self.slope, dynamic=True)

    def compute_loss(self, batch: Any, valid: Tensor | None = None) -> tuple[Tensors, Tensors]:
        """Weighted losses by name, whose sum is minimised, and metrics."""
        log_prob, entropy, guess = self.evaluate(batch)
        advantage = self.advantage(batch, valid)
        losses = {
            "policy": policy.masked_mean(policy.policy_gradient(log_prob, advantage), valid),
            "value": policy.masked_mean(value.squared(guess - batch.target), valid),
            "entropy": -policy.masked_mean(entropy, valid),
        }
        return self.weigh(losses), named(losses)

    def evaluate(self, batch: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Log-probability of the actions taken, entropy and value under the network as it is."""
        out = unroll(self.network, batch, None)
        masks = masks_of(batch.observation, self.names)
        log_prob, entropy = self.distribution.evaluate(out, batch.action, masks)
        return log_prob, entropy, out["value"].squeeze(-1)

    def advantage(self, batch: Any, valid: Tensor | None) -> Tensor:
        """The batch's advantages, standardised if so configured."""
        advantage: Tensor = batch.advantage
        if not self.config.normalize_advantage:
            return advantage
        return policy.standardize(advantage, valid)

    def weigh(self, losses: Tensors) -> Tensors:
        """The losses times their coefficients; what has no weight costs no gradient."""
        weights = {"value": self.config.value_coef, "entropy": self.config.entropy_coef}
        weighed = {name: weight * losses[name] for name, weight in weights.items() if weight}
        return {"policy": losses["policy"], **weighed}

    def state_dict(self) -> dict[str, Any]:
        """Weights, optimizer, random generator, memory and count."""
        return state_of(self, *STATE)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave."""
        restore(self, state, *STATE)


STATE = ("network", "optimizer", "generator", "actor", "memory", "steps")


def named(losses: Tensors) -> Tensors:
    """Losses under the metric names people know."""
    return {
        "policy_gradient_loss": losses["policy"],
        "value_loss": losses["value"],
        "entropy_loss": losses["entropy"],
    }
