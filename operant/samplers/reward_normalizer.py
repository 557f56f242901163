"""Rewards for learning on the scale of the returns that they add up to."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from operant.core.experience import Experience
from operant.core.state import restore, state_of
from operant.core.tree import Array

LIMIT = 10.0  # largest absolute value of a normalised reward
EPSILON = 1e-8  # keeps a variance of zero from being divided by
PRIOR_COUNT = 1e-4  # weight of the variance of one that is assumed before the first return


class RewardNormalizer:
    """Divides rewards by the standard deviation of the running discounted return, cut at ±10.

    In each environment, R ← γR + r at every valid step, from zero where an episode begins, as in
    Stable-Baselines3's VecNormalize and Gymnasium's NormalizeReward. A chunk's returns enter the
    statistics first, and then all of its rewards are divided by one number. The mean is not
    subtracted: that would change which policy is the best one. Those of several agents are divided
    by the deviation of the return of their sum, and cut each.
    """

    def __init__(self, num_envs: int, gamma: float) -> None:
        self.gamma = gamma
        self.returns = np.zeros(num_envs)
        self.mean, self.variance, self.count = 0.0, 1.0, PRIOR_COUNT

    def __call__(self, chunk: Experience) -> Experience:
        """The chunk `[T, B]` with its rewards normalised; the given one stays as it is."""
        self._add(self._returns(chunk)[chunk.valid.numpy()])
        scale = 1.0 / np.sqrt(self.variance + EPSILON)
        if chunk.agents is None:
            return chunk._replace(reward=_scaled(chunk.reward, scale))
        each = _scaled(chunk.agents["reward"], scale)
        return chunk._replace(reward=each.sum(-1), agents=chunk.agents | {"reward": each})

    def _returns(self, chunk: Experience) -> Array:
        """The running return after each step `[T, B]`."""
        reward, valid = chunk.reward.numpy().astype(np.float64), chunk.valid.numpy()
        begins, ended = chunk.first.numpy(), chunk.ended.numpy()
        found: Array = np.empty_like(reward)
        for t, row in enumerate(reward):
            self.returns[begins[t]] = 0.0  # also where an episode was broken off
            np.copyto(self.returns, self.gamma * self.returns + row, where=valid[t])
            found[t] = self.returns
            self.returns[ended[t]] = 0.0
        return found

    def _add(self, returns: Array) -> None:
        """Merge the mean and variance of these returns (Chan et al., 1979)."""
        if not len(returns):
            return
        total = self.count + len(returns)
        share, delta = len(returns) / total, float(returns.mean()) - self.mean
        spread = float(returns.var())
        self.variance += share * (spread - self.variance + delta**2 * (1 - share))
        self.mean += share * delta
        self.count = total

    def state_dict(self) -> dict[str, Any]:
        """The statistics, and the returns of the episodes under way."""
        return state_of(self, "mean", "variance", "count") | {"returns": self.returns.copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave."""
        restore(self, state, "mean", "variance", "count", "returns")


def _scaled(reward: Tensor, scale: float) -> Tensor:
    scaled = np.clip(reward.numpy() * scale, -LIMIT, LIMIT).astype(np.float32)
    return torch.from_numpy(scaled)
