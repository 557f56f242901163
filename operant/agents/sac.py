"""Soft actor–critic with twin critics and a learned temperature (SAC; arXiv:1812.05905).

Continuous parts of an action are inputs of the critics, followed by the pathwise gradient.
Discrete parts are outputs of theirs, a worth for each choice, and the expectation over choices is
exact (arXiv:1910.07207). An action may have parts of both kinds; what they are worth adds up.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, Self

import torch
from gymnasium.spaces import Box
from torch import Generator, Tensor, nn

from operant.agents.actor import Actor
from operant.agents.compiling import one_program
from operant.agents.optimize import (
    Gradients,
    Optimizer,
    Target,
    averaged,
    counted,
    detached,
    surprise,
    total,
    updates_due,
)
from operant.agents.sequence import substate, unroll
from operant.core import tree
from operant.core.config import Count, CountOrZero, Fraction, Positive
from operant.core.errors import UsageError
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
from operant.core.protocols import Network, Parts, ReplayMemory
from operant.core.schedule import Schedule
from operant.core.spaces import Shape, Space, choices
from operant.core.state import restore, state_of
from operant.memory.replay_settings import ReplayConfig
from operant.ops import explore as exploring
from operant.ops import few, policy, returns, value
from operant.ops.distribution import ActionDistribution, distribution_for, masks_of


@dataclass(frozen=True, kw_only=True)
class SACConfig(ReplayConfig):
    """How SAC learns."""

    lr: Schedule = Schedule(3e-4)  # Adam's learning rate: a number, or linear(start, end, steps)
    gamma: Fraction = 0.99  # worth of a reward one step away
    tau: Fraction = 0.005  # how far the target critics move at each update
    replay_size: Count = 1_000_000  # steps that the memory holds
    learning_starts: CountOrZero = 100  # random steps before the first update
    batch_size: Count = 256  # windows behind one gradient
    updates_per_step: Positive = 1.0  # gradient steps for each environment step
    alpha: Positive = 1.0  # the temperature at first: what entropy is worth
    learn_alpha: bool = True  # adapt the temperature so that the entropy meets its target
    target_entropy: float | None = None  # none: -1 a continuous dimension plus discrete_entropy
    discrete_entropy: Fraction = 0.3  # target of a discrete part, as a share of the uniform's
    n_step: Count = 1  # rewards summed before the value is trusted
    sequence: Count = 16  # consecutive steps in a window, for networks with memory


@dataclass(frozen=True)
class SoftChoice:
    """Random actions at first, then draws from the policy."""

    action_space: dict[str, Space]
    distribution: ActionDistribution
    random_steps: int

    def explore(self, out: Tensors, masks: Tensors, generator: Generator, acted: int) -> Tensors:
        """Any action until something can have been learned, then the policy's."""
        if acted >= self.random_steps:
            return self.distribution.sample(out, masks, generator)
        batch, device = len(next(iter(out.values()))), generator.device
        return exploring.uniform(self.action_space, batch, masks, generator, device)

    def exploit(self, out: Tensors, masks: Tensors) -> Tensors:
        """The policy's mode."""
        return self.distribution.mode(out, masks)

    def memo(self, out: Tensors, action: Tensors, masks: Tensors) -> Tensors:
        """Nothing: the policy is asked anew when it learns."""
        return {}

    @property
    def drawable(self) -> bool:
        """Whether it can be drawn in NumPy."""
        return few.drawable(self.distribution)

    def explore_few(
        self, out: Arrays, generator: Generator, rows: tuple[int, int, int], acted: int
    ) -> tuple[Arrays, Arrays]:
        """`explore` and `memo` for a few rows."""
        if acted >= self.random_steps:
            return few.draw(self.distribution, out, generator, rows), {}
        start, stop, total = rows
        drawn = exploring.uniform(self.action_space, total, {}, generator, "cpu")
        return {name: x[start:stop].numpy() for name, x in drawn.items()}, {}


@dataclass(frozen=True)
class CriticMemory:
    """Keeps the hidden states of critics in step with what was seen and done."""

    critic: Network
    late: tuple[str, ...]  # actions that are inputs of theirs

    def __call__(self, observation: Tensors, state: HiddenState, action: Tensors) -> Tensors:
        seen = {**observation, **{f"action.{k}": action[k] for k in self.late}}
        after = self.critic(seen, substate(state, "critic"))[1]
        return {f"critic.{k}": x for k, x in after.items()}


class SAC:
    """Learns to earn reward while acting as randomly as it can afford."""

    def __init__(
        self,
        actor: Network,
        critic: Network,
        action_space: dict[str, Space],
        memory: ReplayMemory,
        config: SACConfig,
        seed: int,
    ) -> None:
        self.network, self.memory, self.config = actor, memory, config
        self.critic: Any = critic
        self.target = Target(self.critic)
        self.action_space, self.names = action_space, tuple(action_space)
        self.distribution = distribution_for(action_space, squash=True)
        self.choices = {k: choices(space) for k, space in action_space.items() if choices(space)}
        smooth = {k: v for k, v in self.distribution.parts.items() if k not in self.choices}
        self.smooth = ActionDistribution(smooth)
        self.device = next(actor.parameters()).device
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self.log_alpha = nn.Parameter(torch.tensor(math.log(config.alpha), device=self.device))
        self.actor_optimizer = Optimizer(actor.parameters(), config.lr, None)
        self.critic_optimizer = Optimizer(self.critic.parameters(), config.lr, None)
        self.alpha_optimizer = Optimizer([self.log_alpha], config.lr, None)
        self.target_entropy = entropy_target(action_space, config)
        self.window = config.sequence if actor.recurrent else 1
        self.length = self.window + config.n_step - 1
        self.updates = 0
        self.learned: list[Tensors] = []  # metrics of each gradient step of the last update
        self._critic_slope, self._actor_slope = self.critic_slope, self.actor_slope
        choice = SoftChoice(action_space, self.distribution, config.learning_starts)
        follow = CriticMemory(self.critic, tuple(smooth)) if actor.recurrent else None
        self.actor = Actor(actor, choice, self.names, seed, "actor", follow)

    @classmethod
    def create(cls, parts: Parts, config: SACConfig, seed: int) -> Self:
        """The agent with networks and a memory of its own."""
        spaces = parts.spaces
        actor = parts.network(cls.output_space(spaces.action))
        counts = {k: (sum(choices(space)),) for k, space in spaces.action.items() if choices(space)}
        worth = counts if len(counts) == len(spaces.action) else {"value": (1,), **counts}
        late = {f"action.{k}": v for k, v in spaces.action.items() if k not in counts}
        critic = parts.network(worth, late, members=2)
        memory = parts.replay(config, seed)
        return cls(actor, critic, spaces.action, memory, config, seed)

    @staticmethod
    def output_space(action_space: dict[str, Space]) -> dict[str, Shape]:
        """What the actor must give: the policy's parameters by action."""
        for name, space in action_space.items():
            if isinstance(space, Box) and not space.is_bounded():
                raise UsageError(
                    f"action {name!r} is {space}: SAC's actions lie between bounds, and this Box "
                    f"has none; give it bounds in a wrapper, or use ppo"
                )
        return dict(distribution_for(action_space, squash=True).param_shapes)

    def initial_state(self, batch_size: int) -> HiddenState:
        """The recurrent state of `batch_size` fresh episodes, of actor and critics."""
        networks = {"actor": self.network, "critic": self.critic}
        fresh = {name: network.initial_state(batch_size) for name, network in networks.items()}
        return HiddenState({f"{n}.{k}": x for n, state in fresh.items() for k, x in state.items()})

    def act(
        self, observation: Tensors, hidden_state: HiddenState | None = None, explore: bool = True
    ) -> Decision:
        """Actions `[B, ...]` by name: random at first, then sampled, or the policy's mode."""
        return self.actor.act(observation, hidden_state, explore)

    @property
    def acted(self) -> int:
        """Environment steps taken while exploring."""
        return self.actor.acted

    def observe(self, observation: Arrays, action: Tensors, memo: Memo, step: EnvStep) -> None:
        """In a loop of your own: remember what was seen, decided and answered."""
        self.memory.write(observation, action, memo, step)

    def update(self) -> Metrics:
        """As many gradient steps as the steps collected call for."""
        self.learned = seen = []
        due = updates_due(self.memory.stored, self.config, self.updates)
        for _ in range(due if self.memory.holds(self.length) else 0):
            seen.append(self.learn())
            self.updates += 1
        if not seen:
            return {}
        rates = {"learning_rate": self.config.lr(self.acted), "n_updates": self.updates}
        return averaged(seen) | rates

    def learn(self) -> Tensors:
        """One gradient step of critics, actor and temperature."""
        drawn = self.memory.sample(self.config.batch_size, self.length)
        batch, weight = tree.to((drawn.experience, drawn.weight), self.device)
        seen, counts = tree.index(batch.observation, 0), batch.valid[0]
        for network in (self.network, self.critic):
            network.observe(seen, counts)
        metrics, gradients, wrong = self._critic_slope(
            batch, weight, self.noise(batch, self.length)
        )
        self.critic_optimizer.follow(gradients, self.acted)
        if weight is not None:
            self.memory.prioritize(drawn.place, wrong)
        found, gradients = self._actor_slope(batch, self.noise(batch, self.window))
        self.actor_optimizer.follow(gradients, self.acted)
        metrics |= found
        if self.config.learn_alpha:
            slope = metrics["entropy"] - self.target_entropy  # of log alpha times this
            metrics["ent_coef_loss"] = self.log_alpha.detach() * slope
            self.alpha_optimizer.follow([slope], self.acted)
        self.target.follow(self.config.tau)
        return {**metrics, "ent_coef": self.log_alpha.detach().exp()}

    def critic_slope(
        self, batch: Experience, weight: Tensor | None, noise: Tensors
    ) -> tuple[Tensors, Gradients, Tensor]:
        """Metrics, the gradient of the critics' loss, and how wrong each window was, `[B]`."""
        errors, valid = self.errors(batch, noise), counted(batch, self.window)
        losses, metrics = self.weigh(errors, valid, weight)
        gradients, _ = self.critic_optimizer.gradient(total(losses))
        return detached(metrics), gradients, surprise(errors.detach().abs().mean(-1), valid)

    def actor_slope(self, batch: Experience, noise: Tensors) -> tuple[Tensors, Gradients]:
        """Metrics, and the gradient of the policy's loss: through the critics, not into them."""
        loss, entropy = self.actor_loss(batch, noise)
        gradients, _ = self.actor_optimizer.gradient(loss)
        return detached({"actor_loss": loss, "entropy": entropy}), gradients

    def compile(self) -> None:
        """Learn by machine code; the first update then takes up to half a minute longer."""
        self._critic_slope = one_program(self.critic_slope)
        self._actor_slope = one_program(self.actor_slope)

    def noise(self, batch: Experience, rows: int) -> Tensors:
        """What continuous actions are drawn from in so many rows."""
        return self.smooth.noise((rows, batch.reward.shape[1]), self.generator)

    def compute_loss(
        self, batch: Experience, weight: Tensor | None = None
    ) -> tuple[Tensors, Tensors]:
        """The critics' losses by name over the window's first steps, and metrics.

        `weight` `[B]` is that of each window.
        """
        errors = self.errors(batch, self.noise(batch, len(batch.reward)))
        return self.weigh(errors, counted(batch, self.window), weight)

    def errors(self, batch: Experience, noise: Tensors) -> Tensor:
        """How far each critic's worth of the actions taken is from the target, `[T, B, 2]`."""
        rows, count = (0, self.window), self.critic.count
        target = self.worth(batch, noise)[: self.window]
        taken = tree.index(batch.action, slice(*rows))
        q = self.judge(self.critic, batch, taken, rows)
        each = {k: torch.stack([taken[k]] * count, 2) for k in self.choices}
        return self.summed(q, partial(self.chosen, q, each)) - target.unsqueeze(-1)

    def weigh(
        self, errors: Tensor, valid: Tensor | None, weight: Tensor | None
    ) -> tuple[Tensors, Tensors]:
        """The critics' losses by name, and metrics."""
        each = value.squared(errors)
        each = each if weight is None else weight.unsqueeze(-1) * each
        members = enumerate(each.unbind(-1))
        losses = {f"critic{i}": policy.masked_mean(x, valid) for i, x in members}
        return losses, {"critic_loss": total(losses)}

    @torch.no_grad()
    def worth(self, batch: Experience, noise: Tensors) -> Tensor:
        """What each action turned out to be worth, `[T, B]`."""
        rows = (1, len(batch.reward) + 1)
        next_value, _ = self.soft_value(self.target.network, batch, rows, noise)
        discount = self.config.gamma * ~batch.terminated
        return returns.n_step(batch.reward, next_value, discount, batch.cut, self.config.n_step)

    def actor_loss(self, batch: Experience, noise: Tensors) -> tuple[Tensor, Tensor]:
        """The policy's loss over the window's first steps, and its mean entropy."""
        worth, entropy = self.soft_value(self.critic, batch, (0, self.window), noise)
        valid = counted(batch, self.window)
        return -policy.masked_mean(worth, valid), policy.masked_mean(entropy, valid)

    def soft_value(
        self, critic: Network, batch: Experience, rows: tuple[int, int], noise: Tensors
    ) -> tuple[Tensor, Tensor]:
        """What these rows are worth under the policy, entropy included, and the entropy."""
        masks = masks_of(tree.index(batch.observation, slice(*rows)), self.names)
        params = unroll(self.network, batch, self.names, rows, "actor")
        action, entropy = self.imagine(params, masks, noise)
        q = tree.map(lambda x: x.amin(-2), self.judge(critic, batch, action, rows))
        worth = self.summed(
            q, lambda k: value.expected_q(q[k], params[k], self.choices[k], masks.get(k))
        )
        return worth + self.log_alpha.detach().exp() * entropy, entropy

    def imagine(self, params: Tensors, masks: Tensors, noise: Tensors) -> tuple[Tensors, Tensor]:
        """Continuous actions that carry a gradient, and the entropy of the whole policy."""
        parts = self.distribution.parts
        entropy = [parts[k].entropy(params[k], masks.get(k)) for k in self.choices]
        action: Tensors = {}
        if self.smooth.parts:
            action, log_prob = self.smooth.sample_with_log_prob(params, noise)
            entropy.append(-log_prob)
        return action, reduce(torch.add, entropy)

    def judge(
        self, critic: Network, batch: Experience, action: Tensors, rows: tuple[int, int]
    ) -> Tensors:
        """What the critics give for these continuous actions in these rows."""
        late = {f"action.{k}": action[k] for k in self.smooth.parts}
        return unroll(critic, batch, None, rows, "critic", late)

    def chosen(self, q: Tensors, action: Tensors, name: str) -> Tensor:
        """What a critic gives for the choices made in one discrete part."""
        return value.q_of({name: q[name]}, {name: action[name]}, self.choices)

    def summed(self, q: Tensors, of_part: Callable[[str], Tensor]) -> Tensor:
        """The whole action's worth `[...]`: of its continuous parts, and of each discrete one."""
        parts = [of_part(name) for name in self.choices]
        return reduce(torch.add, [q["value"].squeeze(-1), *parts] if "value" in q else parts)

    def state_dict(self) -> dict[str, Any]:
        """Weights, optimizers, temperature, random generator, replay and counts."""
        return state_of(self, *STATE)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave."""
        restore(self, state, *STATE)


WEIGHTS = ("network", "critic", "target", "log_alpha")
OPTIMIZERS = ("actor_optimizer", "critic_optimizer", "alpha_optimizer")
STATE = (*WEIGHTS, *OPTIMIZERS, "generator", "actor", "memory", "updates")


def entropy_target(action_space: dict[str, Space], config: SACConfig) -> float:
    """The entropy to keep: given, or by the kinds of the action's parts."""
    if config.target_entropy is not None:
        return config.target_entropy
    target = 0.0
    for space in action_space.values():
        counts = choices(space)
        target += config.discrete_entropy * sum(math.log(n) for n in counts)
        target -= 0 if counts else math.prod(space.shape or ())
    return target
