"""DDPG, DDPGPer, HDDPG and TD3 over an actor and critics of a user's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium.spaces import Box
from torch import Tensor, nn

from operant.agents import ddpg
from operant.agents.critics import Critics
from operant.agents.optimizer import GradientStep, Hooks
from operant.core.experience import Tensors
from operant.core.protocols import Network
from operant.frameworks.arguments import NamedResults, bare, call
from operant.frameworks.buffer import Buffer, PrioritizedBuffer
from operant.frameworks.criterion import elementwise, on_rows
from operant.frameworks.exploration_noise import NoiseMaker
from operant.frameworks.framework import Framework, OptimizerClass
from operant.frameworks.replaying import check_rates, tau_of, user_backup
from operant.networks.custom import CustomNetwork
from operant.networks.ensemble import Ensemble
from operant.ops import noise
from operant.ops.distribution import POLICY
from operant.ops.value import Criterion


class DDPG(Framework):
    """Deep deterministic policy gradient over `actor(state)` and `critic(state, action)`."""

    _is_top = ["actor", "critic", "actor_target", "critic_target"]  # noqa: RUF012  # the contract's
    _is_restorable = ["actor_target", "critic_target"]  # noqa: RUF012
    _pairs: ClassVar[dict[str, str]] = {"actor_target": "actor", "critic_target": "critic"}
    _numbers: ClassVar[tuple[str, ...]] = ("_updates", "_noise")
    _buffer: ClassVar[type[Buffer]] = Buffer
    _critics: ClassVar[tuple[str, ...]] = ("critic",)

    actor_learning_rate: float = 5e-4
    critic_learning_rate: float = 1e-3
    update_rate: float | None = 0.001  # Polyak averaging of the target networks
    update_steps: int | None = None  # or: updates between copies of the networks

    actor: nn.Module
    actor_target: nn.Module
    critic: nn.Module
    critic_target: nn.Module

    def __init__(
        self,
        actor: nn.Module,
        actor_target: nn.Module,
        critic: nn.Module,
        critic_target: nn.Module,
        optimizer: OptimizerClass,
        criterion: Criterion,
        **settings: Any,
    ) -> None:
        models = {"actor": actor, "actor_target": actor_target}
        models |= {"critic": critic, "critic_target": critic_target}
        self._start(models, optimizer, criterion, settings)

    def _start(
        self,
        models: Mapping[str, nn.Module],
        optimizer: OptimizerClass,
        criterion: Criterion,
        settings: Mapping[str, Any],
    ) -> None:
        Framework.__init__(self, models, settings)
        check_rates(self, settings)
        self.criterion, self._updates, self._noise = criterion, 0, NoiseMaker()
        rates = {"actor": self.actor_learning_rate}
        rates |= dict.fromkeys(self._critics, self.critic_learning_rate)
        self._make_optimizers(optimizer, rates)
        self.replay_buffer = self.replay_buffer or self._buffer(self.replay_size)

    # Acting

    def act(self, state: Mapping[str, Any], use_target: bool = False, **_: Any) -> Any:
        """The actor's action `[B, dim]`, and whatever else it gives."""
        return bare(self._ask(state, use_target))

    def act_with_noise(
        self,
        state: Mapping[str, Any],
        noise_param: Any = (0.0, 1.0),
        ratio: float = 1.0,
        mode: str = "uniform",
        use_target: bool = False,
        **_: Any,
    ) -> Any:
        """The actor's action plus `ratio` times noise.

        `noise_param` is (low, high) of `uniform`, (mean, std) of `normal`, (mean, std, low, high)
        of `clipped_normal`, (mean, std) or a dict of `ou`; or a list of these, one a dimension.
        """
        action, *others = self._ask(state, use_target)
        return bare((action + ratio * self._noise(action, mode, noise_param), *others))

    def act_discrete(self, state: Mapping[str, Any], use_target: bool = False, **_: Any) -> Any:
        """The most probable action `[B, 1]`, the actor's probabilities, and whatever else."""
        probability, *others = self._ask(state, use_target)
        return (noise.prefer(probability, 1.0), probability, *others)

    def act_discrete_with_noise(
        self,
        state: Mapping[str, Any],
        use_target: bool = False,
        choose_max_prob: float = 0.95,
        **_: Any,
    ) -> Any:
        """The most probable action with probability `choose_max_prob`, else drawn: row by row."""
        probability, *others = self._ask(state, use_target)
        return (noise.prefer(probability, choose_max_prob), probability, *others)

    act_discreet, act_discreet_with_noise = act_discrete, act_discrete_with_noise

    def _ask(self, state: Mapping[str, Any], use_target: bool) -> tuple[Any, ...]:
        with torch.no_grad():
            return call(self.actor_target if use_target else self.actor, state)

    def _criticize(
        self, state: Mapping[str, Any], action: Mapping[str, Any], use_target: bool = False
    ) -> Tensor:
        """The critic's value of a state and an action."""
        value: Tensor = call(self.critic_target if use_target else self.critic, state, action)[0]
        return value

    # Learning

    def update(
        self,
        update_value: bool = True,
        update_policy: bool = True,
        update_target: bool = True,
        concatenate_samples: bool = True,
        **_: Any,
    ) -> tuple[float, float]:
        """A gradient step of critic and actor; the policy's mean value, and the value loss."""
        if not self.replay_buffer.size():
            raise ValueError("there is no step to learn from; call store_episode first")
        agent, self._updates = self._agent, self._updates + 1
        agent.config, agent.memory = self._config(), self.replay_buffer.memory
        moves = self.update_steps is None or self._updates % self.update_steps == 0
        asked = {"value": update_value, "policy": update_policy, "target": update_target and moves}
        due = frozenset(name for name, wanted in asked.items() if wanted)
        agent.descents = (
            GradientStep("critic_loss", agent.critic_loss, self._optimizer_of(*self._critics)),
            GradientStep("actor_loss", agent.actor_loss, self._optimizer_of("actor")),
        )
        models = [getattr(self, name) for name in ("actor", *self._critics)]
        for model in models:
            model.train()
        drawn = self.replay_buffer.draw(agent.config.batch_size)
        metrics = agent.learn_from(drawn, due)
        for model in models:
            model.eval()
        if "actor_loss" not in metrics:  # it did not move, and is told all the same
            with torch.no_grad():
                metrics["actor_loss"] = agent.actor_loss(drawn.experience)[0]["actor"]
        return -float(metrics["actor_loss"]), float(metrics["critic_loss"])

    @staticmethod
    def action_transform_function(raw_output_action: Any, state: Any, others: Any) -> Any:
        """What a raw action of the actor becomes before the critic sees it; overridable."""
        return raw_output_action

    @staticmethod
    def reward_function(
        reward: Tensor, discount: float, next_value: Tensor, terminal: Tensor, others: Any
    ) -> Tensor:
        """The target of a value; overridable. All are columns `[B, 1]`."""
        raise NotImplementedError  # the agent's own, unless a subclass has another

    def _config(self) -> ddpg.DDPGConfig:
        return ddpg.DDPGConfig(**self._settings())

    def _settings(self) -> dict[str, Any]:
        return {
            "gamma": self.discount,
            "tau": tau_of(self.update_rate, self.update_steps),
            "batch_size": self.batch_size or self.replay_buffer.size(),
            "critics": len(self._critics),
        }

    @cached_property
    def _agent(self) -> ddpg.DDPG:
        """The agent itself, made of the user's parts when it is first needed."""
        taken = self.replay_buffer.memory.fields["action"]
        space: Any = {k: Box(-np.inf, np.inf, x.shape[2:]) for k, x in taken.items()}
        hooks = Hooks(
            criterion=self._criterion(),
            targets={"policy": self._actor_network(self.actor_target, tuple(space))},
            backup=user_backup(self, DDPG.reward_function),
            actions=lambda out: {name: out[POLICY + name] for name in space},
            smooth=self._smooth(),
        )
        network = self._actor_network(self.actor, tuple(space))
        critics = Critics(
            self._critic_network(""),
            space,
            len(self._critics),
            self._critic_network("_target"),
        )
        memory = self.replay_buffer.memory
        return ddpg.DDPG(network, critics, space, memory, self._config(), 0, hooks)

    def _actor_network(self, model: nn.Module, names: tuple[str, ...]) -> CustomNetwork:
        def convert(raw: Any, state: Tensors) -> Any:
            return self.action_transform_function(raw, state, None)

        return CustomNetwork(NamedResults(model, *(POLICY + k for k in names), convert=convert))

    def _critic_network(self, suffix: str) -> Network:
        models = [getattr(self, name + suffix) for name in self._critics]
        networks = [CustomNetwork(NamedResults(model, "value")) for model in models]
        return networks[0] if len(networks) == 1 else Ensemble(networks)

    def _criterion(self) -> Criterion:
        return on_rows(self.criterion)

    def _smooth(self) -> Callable[[Tensor], Tensor] | None:
        return None


class DDPGPer(DDPG):
    """DDPG with prioritized replay; the criterion must give a loss for each row."""

    _buffer: ClassVar[type[Buffer]] = PrioritizedBuffer

    update_rate: float | None = 0.005

    def _criterion(self) -> Criterion:
        return on_rows(elementwise(self.criterion))


class HDDPG(DDPG):
    """Hysteretic DDPG: rises and falls of a value are learned at rates of their own."""

    update_rate: float | None = 0.005
    q_increase_rate: float = 1.0  # share of the learning rate where a value rises
    q_decrease_rate: float = 1.0  # share of the learning rate where a value falls

    def _settings(self) -> dict[str, Any]:
        rates = {"increase_rate": self.q_increase_rate, "decrease_rate": self.q_decrease_rate}
        return super()._settings() | rates


class TD3(DDPG):
    """DDPG with two critics, smoothed actions in targets, and a policy that learns more rarely.

    `policy_delay` counts only the updates that ask for the policy.
    """

    _is_top = [*DDPG._is_top, "critic2", "critic2_target"]  # noqa: RUF012
    _is_restorable = [*DDPG._is_restorable, "critic2_target"]  # noqa: RUF012
    _pairs: ClassVar[dict[str, str]] = DDPG._pairs | {"critic2_target": "critic2"}
    _numbers: ClassVar[tuple[str, ...]] = (*DDPG._numbers, "_policy_asked")
    _critics: ClassVar[tuple[str, ...]] = ("critic", "critic2")

    policy_delay: int = 2  # updates that ask for the policy between those that move it

    def __init__(  # the contract's
        self,
        actor: nn.Module,
        actor_target: nn.Module,
        critic: nn.Module,
        critic_target: nn.Module,
        critic2: nn.Module,
        critic2_target: nn.Module,
        optimizer: OptimizerClass,
        criterion: Criterion,
        **settings: Any,
    ) -> None:
        models = {"actor": actor, "actor_target": actor_target}
        models |= {"critic": critic, "critic_target": critic_target}
        models |= {"critic2": critic2, "critic2_target": critic2_target}
        self._start(models, optimizer, criterion, settings)
        self._policy_asked = 0

    def update(
        self,
        update_value: bool = True,
        update_policy: bool = True,
        update_target: bool = True,
        concatenate_samples: bool = True,
        **_: Any,
    ) -> tuple[float, float]:
        """As DDPG's; policy and targets move every `policy_delay` updates that ask for them."""
        self._policy_asked += update_policy
        due = self._policy_asked % self.policy_delay == 0
        moves = update_target and (due or not update_policy)
        return super().update(update_value, update_policy and due, moves)

    @staticmethod
    def policy_noise_function(actions: Tensor, *_: Any) -> Tensor:
        """The target policy's actions, smoothed by clipped noise; overridable."""
        return actions + noise.clipped_normal(actions, 0.0, 0.2, -0.5, 0.5)

    def _smooth(self) -> Callable[[Tensor], Tensor] | None:
        return self.policy_noise_function
