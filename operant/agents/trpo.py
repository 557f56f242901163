"""Trust region policy optimisation (TRPO; arXiv:1502.05477).

Policy and value are networks of their own: through a shared layer, fitting the value would move the
policy further than the trust region allows.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from operant.agents.actor import Actor, PolicySelector
from operant.agents.advantages import advantages, rollout_metrics
from operant.agents.agent import AgentBase
from operant.agents.critics import NAME, CriticState
from operant.agents.modes import Modules, in_eval_mode
from operant.agents.optimizer import GradientStep, Hooks, Losses, Optimizer, OptimizerName
from operant.agents.unroll import passes, unroll
from operant.core.config import AgentConfig, Count, Fraction, NotNegative, Positive, Rate
from operant.core.experience import HiddenState, Metrics, Tensors
from operant.core.protocols import Network, Parts, RolloutMemory
from operant.core.schedule import Schedule
from operant.core.spaces import Shape, Space
from operant.ops import policy, trust_region
from operant.ops.distribution import distribution_for, masks_of
from operant.ops.value import value_error


@dataclass(frozen=True, kw_only=True)
class TRPOConfig(AgentConfig):
    """How TRPO learns."""

    length: Count = 256  # rollout length: environment steps of each environment between updates
    lr: Rate = Schedule(1e-3)  # learning rate of the value: a number, or linear(start, end, steps)
    optimizer: OptimizerName = "adam"  # optimizer of the value, as in torch.optim
    gamma: Fraction = 0.99  # discount factor
    lam: Fraction = 0.95  # GAE lambda: trade-off of bias and variance of the advantages
    normalize_advantage: bool = True  # normalise the advantages of a rollout
    max_kl: Positive = 0.01  # trust region: the largest mean KL divergence of an update
    damping: NotNegative = 0.1  # what is added to the diagonal of the Fisher matrix
    cg_iterations: Count = 10  # iterations of conjugate gradients for the natural gradient
    backtracks: Count = 10  # steps that the line search tries
    shrink: Fraction = 0.8  # length of each of these steps, as a share of the one before
    epochs: Count = 10  # passes of the value over each rollout
    minibatch: Count = 128  # environment steps in a minibatch of the value

    def gradient_steps(self, steps: int, num_envs: int) -> int:
        rollout = self.length * num_envs
        return steps // rollout * (1 + self.epochs * max(1, round(rollout / self.minibatch)))

    def gradient_rows(self, num_envs: int) -> int:
        return self.minibatch


class TRPO(AgentBase):
    """Takes one natural-gradient step of the policy on each rollout, then fits the value to it."""

    saved = (
        *("network", "critic", "optimizer", "generator"),
        *("actor", "memory", "steps", "updates"),
    )
    any_batch_size = True  # rows in which an environment only reset are left out

    def __init__(
        self,
        network: Network,
        critic: Network,
        action_space: dict[str, Space],
        memory: RolloutMemory,
        config: TRPOConfig,
        seed: int,
        hooks: Hooks = Hooks(),
    ) -> None:
        self.network, self.critic, self.memory, self.config = network, critic, memory, config
        self.critic_modules = in_eval_mode(critic)
        self.distribution = hooks.distribution or distribution_for(action_space, free_std=True)
        self.criterion = hooks.criterion or value_error
        state = CriticState(critic, ()) if network.recurrent else None
        self.actor = Actor(network, PolicySelector(self.distribution), seed, "actor", state)
        self.generator = torch.Generator(self.actor.device).manual_seed(seed)  # of minibatches
        rule = hooks.optimizers.get("value", config.optimizer)
        self.optimizer = Optimizer(critic.parameters(), config.lr, None, rule)
        self.descents = (GradientStep("value_loss", self.compute_loss, self.optimizer),)
        self.steps = self.updates = 0  # environment steps learned from, gradient steps taken
        self.learned = []

    @classmethod
    def create(cls, parts: Parts, config: TRPOConfig, seed: int) -> Self:
        """The agent with networks and a rollout buffer of its own."""
        action_space, memory = parts.spaces.action, parts.rollout(config.length)
        network = parts.network(cls.output_space(action_space))
        return cls(network, parts.network({"value": (1,)}), action_space, memory, config, seed)

    @staticmethod
    def output_space(action_space: dict[str, Space]) -> dict[str, Shape]:
        """What the policy's network must give: its parameters by action."""
        return distribution_for(action_space, free_std=True).outputs

    def initial_state(self, batch_size: int) -> HiddenState:
        """The recurrent state of `batch_size` fresh episodes, of policy and value."""
        fresh = {"actor": self.network, NAME: self.critic}
        states = {name: network.initial_state(batch_size) for name, network in fresh.items()}
        return HiddenState({f"{n}.{k}": x for n, state in states.items() for k, x in state.items()})

    def steps_taken(self) -> int:
        return self.steps

    def mode_dependent(self) -> Modules:
        """The value's alone: the divergence is that of the policy which acts, in eval mode."""
        return self.critic_modules

    def update(self) -> Metrics:
        """Learn from the rollout in memory, if there is a whole one, and clear it."""
        if not self.memory.ready():
            return {}
        config = self.config
        batch = advantages(self.critic, self.memory.read(), config.gamma, config.lam, NAME)
        moved = self.improve_policy(batch)
        self.learned = self.fit_value(batch)
        metrics = rollout_metrics(self.learned, batch) | moved
        metrics |= {"n_updates": self.updates, "learning_rate": self.optimizer.lr(self.steps)}
        for network in (self.network, self.critic):
            network.observe(batch.observation, batch.valid)  # last: the batch was acted on before
        self.steps += int(batch.valid.sum())
        self.memory.clear()
        return metrics

    def improve_policy(self, batch: Any, move: bool = True) -> Metrics:
        """One step along the natural gradient, as far as the trust region goes; what came of it.

        With `move` False the policy stays as it is.
        """
        config, parameters = self.config, list(self.network.parameters())
        if config.normalize_advantage:
            batch = batch._replace(advantage=policy.standardize(batch.advantage, batch.valid))
        with self._twice_differentiable():
            out = self._outputs(batch)
        # Copies: a deviation that no observation changes is the parameter itself, which moves.
        old = {name: x.detach().clone() for name, x in out.items()}
        gain, kl, entropy = self.surrogate(batch, old, out)
        gradient = torch.autograd.grad(gain, parameters, retain_graph=True, materialize_grads=True)
        product = trust_region.fisher_product(kl, parameters, config.damping)
        slope = trust_region.flatten(gradient)
        step = trust_region.natural_step(slope, product, config.max_kl, config.cg_iterations)
        stay = trust_region.Judged(0.0, 0.0)
        found = self._line_search(batch, old, step, gain.item()) if move else stay
        for parameter, part in zip(parameters, gradient, strict=True):
            parameter.grad = -part  # of the loss, where torch's optimizers leave it
        self.updates += 1
        return {
            "policy_gradient_loss": -gain.item() - found.gain,
            "entropy_loss": -entropy.item(),
            "kl": found.kl,
            "line_search_success": float(found.gain > 0),
        }

    def _line_search(
        self, batch: Any, old: Tensors, step: Tensor, before: float
    ) -> trust_region.Judged:
        """Take as much of a step as is good, or nothing."""
        config, parameters = self.config, list(self.network.parameters())
        start = trust_region.flatten([p.detach() for p in parameters])

        @torch.no_grad()
        def judge(step: Tensor) -> trust_region.Judged:
            trust_region.assign(parameters, start + step)
            gain, kl, _ = self.surrogate(batch, old, self._outputs(batch))
            return trust_region.Judged(gain.item() - before, kl.item())

        found = trust_region.line_search(
            judge, step, config.max_kl, config.backtracks, config.shrink
        )
        if found is None:
            trust_region.assign(parameters, start)
        return found or trust_region.Judged(0.0, 0.0)

    def surrogate(self, batch: Any, old: Tensors, new: Tensors) -> tuple[Tensor, Tensor, Tensor]:
        """Means over a batch: what the new policy gains, its divergence from the old, its entropy.

        The divergence is exact: KL(old, new) in every state of the batch.
        """
        masks = masks_of(batch.observation, self.distribution.parts)
        log_prob, entropy = self.distribution.evaluate(new, batch.action, masks)
        gain = policy.surrogate(log_prob - batch.log_prob, batch.advantage)
        kl = self.distribution.kl(old, new, masks)
        mean, valid = policy.masked_mean, batch.valid
        return mean(gain, valid), mean(kl, valid), mean(entropy, valid)

    def fit_value(self, batch: Any) -> list[Tensors]:
        """`epochs` passes of the value over the batch; metrics of each gradient step."""
        config, recurrent = self.config, self.critic.recurrent
        learned: list[Tensors] = []
        for minibatches in passes(
            batch, config.epochs, config.minibatch, recurrent, self.generator
        ):
            for minibatch, valid in minibatches:
                learned.append(self.descend(self.descents[0], minibatch, valid))
        self.updates += len(learned)
        return learned

    def compute_loss(self, batch: Any, valid: Tensor | None = None) -> Losses:
        """Half the squared error of the value, or what the criterion makes of it, by name."""
        value = unroll(self.critic, batch, ("value",), name=NAME)["value"].squeeze(-1)
        return {"value": policy.reduced(self.criterion(value, batch.target), valid)}, {}

    def _outputs(self, batch: Any) -> Tensors:
        """The policy's parameters in every row."""
        outputs, late = tuple(self.distribution.outputs), self.distribution.late(batch.action)
        return unroll(self.network, batch, outputs, name="actor", late=late)

    def _twice_differentiable(self) -> AbstractContextManager[None]:
        """cuDNN's recurrent layers have no second derivative; torch's own do."""
        if not (self.network.recurrent and self.actor.device.type == "cuda"):
            return nullcontext()
        return torch.backends.cudnn.flags(enabled=False)
