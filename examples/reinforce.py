"""REINFORCE (Williams 1992) with the mean return as baseline: an agent outside of the package.

operant train reinforce:Reinforce --env.id CartPole-v1 --steps 100_000 --agent.lr 5e-3
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import operant
from operant.agents import Actor, AgentBase, GradientStep, Losses, Optimizer, PolicySelector
from operant.core import AgentConfig, Count, Fraction, HiddenState, Parts, Rate, Schedule, tree
from operant.ops import distribution_for, masks_of, policy, returns


@dataclass(frozen=True, kw_only=True)
class ReinforceConfig(AgentConfig):
    """How REINFORCE learns."""

    length: Count = 512  # environment steps of each environment between updates
    lr: Rate = Schedule(5e-3)  # learning rate: a number, or linear(start, end)
    gamma: Fraction = 0.99  # discount factor


class Reinforce(AgentBase):
    """Learns once from the returns of the episodes that ended in a rollout."""

    saved = ("network", "optimizer", "actor", "memory", "updates")

    def __init__(self, parts: Parts, config: ReinforceConfig, seed: int) -> None:
        self.config, self.memory = config, parts.rollout(config.length)
        self.distribution = distribution_for(parts.spaces.action, free_std=True)
        self.network = parts.network(self.distribution.outputs)
        self.actor = Actor(self.network, PolicySelector(self.distribution), seed)
        self.optimizer = Optimizer(self.network.parameters(), config.lr)
        self.descents = (GradientStep("loss", self.compute_loss, self.optimizer),)
        self.updates, self.learned = 0, []

    @classmethod
    def create(cls, parts: Parts, config: ReinforceConfig, seed: int) -> Self:
        """The agent with a network and a memory; its settings are what `config` is annotated as."""
        return cls(parts, config, seed)

    def update(self) -> dict[str, float]:
        """Learn from the rollout in memory, if there is a whole one, and clear it."""
        if not self.memory.ready():
            return {}
        chunk = tree.to(self.memory.read(), self.actor.device)
        self.learned = [self.descend(self.descents[0], chunk)]
        self.updates += 1
        self.network.observe(tree.index(chunk.observation, slice(0, -1)), chunk.valid)
        self.memory.clear()
        return {name: float(x) for name, x in self.learned[0].items()}

    def compute_loss(self, chunk: Any) -> Losses:
        """-log π(a_t|s_t) (G_t - mean G) / std G, over steps whose episode ended in the chunk."""
        going_on = 1.0 - chunk.ended.float()
        known = chunk.valid & (returns.accumulate(chunk.ended.float(), going_on) > 0)
        gain = returns.accumulate(chunk.reward, self.config.gamma * going_on)
        observation = tree.index(chunk.observation, slice(0, -1))  # the last row has no action yet
        state = HiddenState(tree.index(dict(chunk.hidden_state), 0))
        out, _ = self.network(observation, state, chunk.first[:-1])
        masks = masks_of(observation, self.distribution.parts)
        log_prob = self.distribution.log_prob(out, chunk.action, masks)
        loss = policy.policy_gradient(log_prob, policy.standardize(gain, known))
        return {"policy": policy.masked_mean(loss, known)}, {}


if __name__ == "__main__":
    operant.train(Reinforce, "CartPole-v1", steps=100_000, env={"num_envs": 8})
