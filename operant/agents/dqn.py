"""Deep Q-learning (DQN; Nature 518, 2015) with double, duelling and n-step as settings.

An action of several discrete parts is worth the sum of what its parts are worth, so the best
action is the best of each part, and one discrete action is the case of one part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Generator, Tensor

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
from operant.agents.sequence import unroll
from operant.core import tree
from operant.core.config import Count, Fraction, NotNegative, check
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
from operant.ops import policy, returns, value
from operant.ops.distribution import masks_of

Slope = Callable[[Experience, Tensor | None], tuple[Tensors, Gradients, Tensor]]


@dataclass(frozen=True, kw_only=True)
class DQNConfig(ReplayConfig):
    """How DQN learns."""

    length: Count = 4  # steps of every environment between updates
    lr: Schedule = Schedule(1e-4)  # Adam's learning rate: a number, or linear(start, end, steps)
    gamma: Fraction = 0.99  # worth of a reward one step away
    epsilon: Schedule = Schedule(1.0, 0.05, 100_000)  # share of random actions
    target_every: Count = 1_000  # gradient steps between moves of the target network
    tau: Fraction = 1.0  # how far the target network moves, 1 copies
    double: bool = True  # choose the next action by the online network (arXiv:1509.06461)
    dueling: bool = False  # value and advantages apart (arXiv:1511.06581)
    n_step: Count = 1  # rewards summed before the value is trusted
    sequence: Count = 16  # consecutive steps in a window, for networks with memory
    max_grad_norm: NotNegative = 10.0  # bound on the gradient's norm, 0 for none

    def __post_init__(self) -> None:
        super().__post_init__()
        for share in (self.epsilon.start, self.epsilon.end):
            check("epsilon", share, Fraction)


@dataclass(frozen=True)
class GreedyChoice:
    """The best action of each part, and now and then any action at all."""

    action_space: dict[str, Space]
    choices: dict[str, list[int]]
    epsilon: Schedule

    def explore(self, out: Tensors, masks: Tensors, generator: Generator, acted: int) -> Tensors:
        """A random action with the probability due after so many steps, else the best."""
        batch, device = len(next(iter(out.values()))), generator.device
        other = exploring.uniform(self.action_space, batch, masks, generator, device)
        best = self.exploit(out, masks)
        return exploring.epsilon_greedy(best, other, self.epsilon(acted), generator)

    def exploit(self, out: Tensors, masks: Tensors) -> Tensors:
        """The action that is worth most."""
        best = value.greedy({name: out[name] for name in self.choices}, self.choices, masks)
        return {k: x.reshape(-1, *(self.action_space[k].shape or ())) for k, x in best.items()}

    def memo(self, out: Tensors, action: Tensors, masks: Tensors) -> Tensors:
        """Nothing: what an action was worth then does not matter later."""
        return {}


class DQN:
    """Learns what each action is worth from a replay of everything that was tried."""

    def __init__(
        self,
        network: Network,
        action_space: dict[str, Space],
        memory: ReplayMemory,
        config: DQNConfig,
        seed: int,
    ) -> None:
        self.network, self.memory, self.config = network, memory, config
        self.action_space = action_space
        self.names = tuple(action_space)
        self.choices = {name: choices(space) for name, space in action_space.items()}
        self.target = Target(network)
        self.device = next(network.parameters()).device
        choice = GreedyChoice(action_space, self.choices, config.epsilon)
        self.actor = Actor(network, choice, self.names, seed)
        self.optimizer = Optimizer(network.parameters(), config.lr, config.max_grad_norm)
        self.window = config.sequence if network.recurrent else 1
        self.length = self.window + config.n_step - 1
        self.updates = 0
        self.learned: list[Tensors] = []  # metrics of each gradient step of the last update
        self._slope: Slope = self.slope

    @classmethod
    def create(cls, parts: Parts, config: DQNConfig, seed: int) -> Self:
        """The agent with a network and a memory of its own."""
        spaces = parts.spaces
        outputs = cls.output_space(spaces.action) | ({"value": (1,)} if config.dueling else {})
        memory = parts.replay(config, seed)
        return cls(parts.network(outputs), spaces.action, memory, config, seed)

    @staticmethod
    def output_space(action_space: dict[str, Space]) -> dict[str, Shape]:
        """What the network must give: one number for each choice of each action."""
        for name, space in action_space.items():
            if not choices(space):
                raise UsageError(
                    f"action {name!r} is {space}: DQN takes the best of finitely many actions, "
                    f"and a Box has no such list; use sac or ppo"
                )
        return {name: (sum(choices(space)),) for name, space in action_space.items()}

    def initial_state(self, batch_size: int) -> HiddenState:
        """The recurrent state of `batch_size` fresh episodes."""
        return self.network.initial_state(batch_size)

    def act(
        self, observation: Tensors, hidden_state: HiddenState | None = None, explore: bool = True
    ) -> Decision:
        """The best actions `[B, ...]` by name, or now and then a random one."""
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
            if self.updates % self.config.target_every == 0:
                self.target.follow(self.config.tau)
        if not seen:
            return {}
        rates = {"learning_rate": self.optimizer.lr(self.acted), "n_updates": self.updates}
        return averaged(seen) | rates | {"exploration_rate": self.config.epsilon(self.acted)}

    def learn(self) -> Tensors:
        """One gradient step on windows drawn from memory."""
        drawn = self.memory.sample(self.config.batch_size, self.length)
        batch, weight = tree.to((drawn.experience, drawn.weight), self.device)
        self.network.observe(tree.index(batch.observation, 0), batch.valid[0])
        metrics, gradients, wrong = self._slope(batch, weight)
        self.optimizer.follow(gradients, self.acted)
        if weight is not None:
            self.memory.prioritize(drawn.place, wrong)
        return metrics

    def slope(self, batch: Experience, weight: Tensor | None) -> tuple[Tensors, Gradients, Tensor]:
        """Metrics, the bounded gradient of the loss, and how wrong each window was, `[B]`."""
        error, chosen = self.errors(batch)
        valid = counted(batch, self.window)
        losses, metrics = self.weigh(error, chosen, valid, weight)
        gradients, norm = self.optimizer.gradient(total(losses))
        metrics = detached({**metrics, "grad_norm": norm})
        return metrics, gradients, surprise(error.detach().abs(), valid)

    def compile(self) -> None:
        """Learn by machine code; the first update then takes up to half a minute longer."""
        self._slope = one_program(self.slope)

    def compute_loss(
        self, batch: Experience, weight: Tensor | None = None
    ) -> tuple[Tensors, Tensors]:
        """The loss by name of the window's first steps, and metrics; `weight` `[B]` of each."""
        return self.weigh(*self.errors(batch), counted(batch, self.window), weight)

    def errors(self, batch: Experience) -> tuple[Tensor, Tensor]:
        """How far the worth of the actions taken is from its target, and that worth, `[T, B]`."""
        length = self.window
        q = self.q_values(self.network, batch, (0, length))
        chosen = value.q_of(q, tree.index(batch.action, slice(0, length)), self.choices)
        return chosen - self.targets(batch)[:length], chosen

    def weigh(
        self, error: Tensor, chosen: Tensor, valid: Tensor | None, weight: Tensor | None
    ) -> tuple[Tensors, Tensors]:
        """The loss by name and metrics."""
        each = value.huber(error) if weight is None else weight * value.huber(error)
        loss = policy.masked_mean(each, valid)
        return {"q": loss}, {"loss": loss, "q_values": policy.masked_mean(chosen, valid)}

    @torch.no_grad()
    def targets(self, batch: Experience) -> Tensor:
        """What each action turned out to be worth, `[T, B]`."""
        rows = (1, len(batch.reward) + 1)
        ahead = self.q_values(self.target.network, batch, rows)
        judge = self.q_values(self.network, batch, rows) if self.config.double else ahead
        masks = masks_of(tree.index(batch.observation, slice(*rows)), self.names)
        best = value.greedy(judge, self.choices, masks)
        next_value = value.q_of(ahead, best, self.choices)
        discount = self.config.gamma * ~batch.terminated
        return returns.n_step(batch.reward, next_value, discount, batch.cut, self.config.n_step)

    def q_values(self, network: Network, batch: Experience, rows: tuple[int, int]) -> Tensors:
        """The worth of every choice in these rows."""
        out = unroll(network, batch, None, rows)
        if not self.config.dueling:
            return out
        return value.dueling({name: out[name] for name in self.names}, out["value"], self.choices)

    def state_dict(self) -> dict[str, Any]:
        """Weights, optimizer, random generator, replay and counts."""
        return state_of(self, *STATE)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave."""
        restore(self, state, *STATE)


STATE = ("network", "target", "optimizer", "actor", "memory", "updates")
