"""Proximal policy optimisation with a clipped surrogate (PPO; arXiv:1707.06347)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from operant.agents.actor_critic import ActorCritic, ActorCriticConfig, named
from operant.agents.sequence import passes
from operant.core.config import Count, Fraction, NotNegative, Positive
from operant.core.experience import Tensors
from operant.core.schedule import Schedule
from operant.ops import policy, value


@dataclass(frozen=True, kw_only=True)
class PPOConfig(ActorCriticConfig):
    """How PPO learns."""

    length: Count = 128  # steps of every environment behind one update
    lr: Schedule = Schedule(3e-4)  # Adam's learning rate: a number, or linear(start, end, steps)
    lam: Fraction = 0.95  # trust in rewards seen over values guessed
    normalize_advantage: bool = True  # bring each minibatch's advantages to mean 0, deviation 1
    clip: Positive = 0.2  # how far the likelihood ratio may leave one
    epochs: Count = 4  # passes over what was collected
    minibatch: Count = 256  # steps behind one gradient
    target_kl: NotNegative = 0.0  # stop the epochs when the policy has moved this far, 0 never


class PPO(ActorCritic):
    """Learns from each chunk in several passes, as far as the policy stays near."""

    config: PPOConfig

    def learn(self, batch: Any) -> list[Tensors]:
        """`epochs` passes over the batch in minibatches; metrics of each gradient step."""
        config, recurrent = self.config, self.network.recurrent
        epochs = passes(batch, config.epochs, config.minibatch, recurrent, self.generator)
        seen: list[Tensors] = []
        for parts in epochs:
            for part, valid in parts:
                seen.append(self.descend(part, valid))
            if config.target_kl and float(seen[-1]["approx_kl"]) > 1.5 * config.target_kl:
                break
        return seen

    def compute_loss(self, batch: Any, valid: Tensor | None = None) -> tuple[Tensors, Tensors]:
        """Weighted losses by name, whose sum is minimised, and metrics."""
        clip = self.config.clip
        log_prob, entropy, guess = self.evaluate(batch)
        log_ratio = log_prob - batch.log_prob
        gain = policy.clipped_surrogate(log_ratio, self.advantage(batch, valid), clip)
        losses = {
            "policy": -policy.masked_mean(gain, valid),
            "value": policy.masked_mean(value.squared(guess - batch.target), valid),
            "entropy": -policy.masked_mean(entropy, valid),
        }
        with torch.no_grad():
            moved = {
                "approx_kl": policy.masked_mean(policy.kl_estimate(log_ratio), valid),
                "clip_fraction": policy.masked_mean(policy.clip_fraction(log_ratio, clip), valid),
            }
        return self.weigh(losses), named(losses) | moved
