"""DQN, DQNPer and RAINBOW over a Q-network of a user's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import torch
from gymnasium.spaces import Discrete
from torch import Tensor, nn

from operant.agents import dqn
from operant.agents.off_policy import Due
from operant.agents.optimizer import GradientStep, Hooks
from operant.core.errors import UsageError
from operant.core.experience import Drawn
from operant.frameworks.arguments import NamedResults, call
from operant.frameworks.buffer import Buffer, PrioritizedBuffer
from operant.frameworks.criterion import elementwise, on_rows
from operant.frameworks.framework import Framework, OptimizerClass
from operant.frameworks.replaying import check_rates, tau_of, user_backup
from operant.networks.custom import CustomNetwork
from operant.ops import atoms, explore, value
from operant.ops.value import Criterion, Q

ACTION = "action"  # the one action of the record
MODES = ("vanilla", "fixed_target", "double")


class DQN(Framework):
    """Deep Q-learning over `qnet(state)`, which gives a value for each action.

    The mode `vanilla` has no target network, `fixed_target` takes the best action by it, `double`
    by the online network.
    """

    _is_top = ["qnet", "qnet_target"]  # noqa: RUF012  # the contract's
    _is_restorable = ["qnet_target"]  # noqa: RUF012
    _pairs: ClassVar[dict[str, str]] = {"qnet_target": "qnet"}
    _numbers: ClassVar[tuple[str, ...]] = ("epsilon", "_updates")
    _buffer: ClassVar[type[Buffer]] = Buffer

    epsilon_decay: float = 0.9999  # what epsilon is multiplied by at each noisy action
    update_rate: float | None = 0.005  # Polyak averaging of the target network
    update_steps: int | None = None  # or: updates between copies of the network
    learning_rate: float = 1e-3
    mode: str = "double"  # vanilla, fixed_target or double

    qnet: nn.Module
    qnet_target: nn.Module

    def __init__(
        self,
        qnet: nn.Module,
        qnet_target: nn.Module,
        optimizer: OptimizerClass,
        criterion: Criterion,
        **settings: Any,
    ) -> None:
        super().__init__({"qnet": qnet, "qnet_target": qnet_target}, settings)
        if self.mode not in MODES:
            raise UsageError(f"mode = {self.mode!r}: expected one of {', '.join(MODES)}")
        check_rates(self, settings)
        self.criterion, self.epsilon, self._updates = criterion, 1.0, 0
        self._make_optimizers(optimizer, {"qnet": self.learning_rate})
        self.replay_buffer = self.replay_buffer or self._buffer(self.replay_size)

    def act_discrete(self, state: Mapping[str, Any], use_target: bool = False, **_: Any) -> Any:
        """The best action `[B, 1]`, and whatever else the Q-network gives."""
        q, *others = self._ask(state, use_target)
        return (self._best(q), *others) if others else self._best(q)

    def act_discrete_with_noise(
        self,
        state: Mapping[str, Any],
        use_target: bool = False,
        decay_epsilon: bool = True,
        **_: Any,
    ) -> Any:
        """The best action, or with probability `epsilon` any: row by row. `epsilon` then decays."""
        q, *others = self._ask(state, use_target)
        best, count = self._best(q).cpu(), self._values(q).shape[-1]
        other = torch.randint(count, best.shape)
        coin = torch.default_generator
        action = explore.epsilon_greedy({ACTION: best}, {ACTION: other}, self.epsilon, coin)[ACTION]
        if decay_epsilon:
            self.epsilon *= self.epsilon_decay
        action = action.to(q.device)
        return (action, *others) if others else action

    act_discreet, act_discreet_with_noise = act_discrete, act_discrete_with_noise

    def _ask(self, state: Mapping[str, Any], use_target: bool) -> tuple[Any, ...]:
        with torch.no_grad():
            return call(self.qnet_target if use_target else self.qnet, state)

    def _values(self, q: Tensor) -> Tensor:
        """Q-values `[B, actions]` of what the Q-network gives."""
        return q

    def _best(self, q: Tensor) -> Tensor:
        values = self._values(q)
        found = value.greedy({ACTION: values}, {ACTION: (values.shape[-1],)}, {})
        return found[ACTION].unsqueeze(-1)

    def update(
        self,
        update_value: bool = True,
        update_target: bool = True,
        concatenate_samples: bool = True,
        **_: Any,
    ) -> float:
        """One gradient step on steps drawn from the buffer; the value loss."""
        if not self.replay_buffer.size():
            raise ValueError("there is no step to learn from; call store_episode first")
        agent = self._agent
        agent.config, agent.memory = self._config(), self.replay_buffer.memory
        agent.descents = (GradientStep("loss", agent.compute_loss, self._optimizer_of("qnet")),)
        drawn = self.replay_buffer.draw(agent.config.batch_size, agent.config.n_step)
        self._updates += 1
        self.qnet.train()
        metrics = agent.learn_from(self._taken(drawn), self._due(update_value, update_target))
        self.qnet.eval()
        return float(metrics["loss"])

    def _due(self, update_value: bool, update_target: bool) -> Due:
        moves = self.update_steps is None or self._updates % self.update_steps == 0
        return frozenset(
            name
            for name, wanted in (("value", update_value), ("target", update_target and moves))
            if wanted
        )

    def _taken(self, drawn: Drawn) -> Drawn:
        """What was drawn, with the one action that `action_get_function` finds in each step."""
        batch = drawn.experience
        rows = {name: x.flatten(0, 1) for name, x in batch.action.items()}
        action = self.action_get_function(rows).reshape(batch.reward.shape).long()
        return drawn._replace(experience=batch._replace(action={ACTION: action}))

    @staticmethod
    def action_get_function(sampled_actions: Mapping[str, Tensor]) -> Tensor:
        """The action `[B, 1]` among those of a step by name; by default the one called `action`."""
        return sampled_actions[ACTION]

    @staticmethod
    def reward_function(
        reward: Tensor, discount: float, next_value: Tensor, terminal: Tensor, others: Any
    ) -> Tensor:
        """The target of a value; overridable. All are columns `[B, 1]`."""
        raise NotImplementedError  # the agent's own, unless a subclass has another

    def _config(self) -> dqn.DQNConfig:
        return dqn.DQNConfig(
            gamma=self.discount,
            double=self.mode == "double",
            tau=tau_of(self.update_rate, self.update_steps),
            batch_size=self.batch_size or self.replay_buffer.size(),
        )

    @cached_property
    def _agent(self) -> dqn.DQN:
        """The agent itself, made of the user's parts when it is first needed."""
        q = self._example()
        space: Any = {ACTION: Discrete(self._values(q).shape[-1])}
        network = self._network(self.qnet)
        target = network if self.mode == "vanilla" else self._network(self.qnet_target)
        hooks = Hooks(
            criterion=self._criterion(),
            targets={"value": target},
            backup=user_backup(self, DQN.reward_function),
        )
        return dqn.DQN(network, space, self.replay_buffer.memory, self._config(), 0, hooks)

    def _example(self) -> Tensor:
        """What the Q-network gives for one stored state."""
        q: Tensor = self._ask(self.replay_buffer.example(), use_target=False)[0]
        return q

    def _network(self, model: nn.Module) -> CustomNetwork:
        return CustomNetwork(NamedResults(model, Q + ACTION))

    def _criterion(self) -> Criterion:
        return on_rows(self.criterion)


class DQNPer(DQN):
    """DQN with prioritized replay; the criterion must give a loss for each row."""

    _buffer: ClassVar[type[Buffer]] = PrioritizedBuffer

    def _criterion(self) -> Criterion:
        return on_rows(elementwise(self.criterion))


class RAINBOW(DQNPer):
    """DQN over distributions: `qnet(state)` gives probabilities `[B, actions, atoms]`."""

    reward_future_steps: int = 3  # n of the n-step return
    update_rate: float | None = 0.001

    def __init__(
        self,
        qnet: nn.Module,
        qnet_target: nn.Module,
        optimizer: OptimizerClass,
        value_min: float,
        value_max: float,
        **settings: Any,
    ) -> None:
        self.value_min, self.value_max = value_min, value_max
        super().__init__(qnet, qnet_target, optimizer, nn.MSELoss(reduction="none"), **settings)

    def _values(self, q: Tensor) -> Tensor:
        return atoms.mean(_log(q), self.value_min, self.value_max)

    def _network(self, model: nn.Module) -> CustomNetwork:
        flat = NamedResults(model, Q + ACTION, convert=lambda p, _: _log(p).flatten(1))
        return CustomNetwork(flat)

    def _config(self) -> dqn.DQNConfig:
        return replace(
            super()._config(),
            atoms=self._atoms,
            value_min=self.value_min,
            value_max=self.value_max,
            n_step=self.reward_future_steps,
        )

    @cached_property
    def _atoms(self) -> int:
        return int(self._example().shape[-1])


def _log(probability: Tensor) -> Tensor:
    """Logits again, whose softmax is the probability."""
    return probability.clamp(min=1e-6).log()
