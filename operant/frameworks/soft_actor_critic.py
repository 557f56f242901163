"""SAC over an actor and two critics of a user's own."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium.spaces import Box
from torch import Tensor, nn

from operant.agents import sac
from operant.agents.optimizer import GradientStep, Hooks
from operant.core.experience import Tensors
from operant.frameworks.arguments import NamedResults, bare, call
from operant.frameworks.buffer import Buffer
from operant.frameworks.criterion import on_rows
from operant.frameworks.framework import Framework, OptimizerClass
from operant.frameworks.replaying import check_rates, tau_of, user_backup
from operant.frameworks.told_policy import LOG_PROB
from operant.networks.custom import CustomNetwork
from operant.networks.ensemble import Ensemble
from operant.ops.distribution import POLICY
from operant.ops.value import Criterion


class SAC(Framework):
    """Soft actor–critic over `actor(state)` and two critics of `(state, action)`.

    The actor gives an action that carries a gradient, and its log-probability; more passes through
    `act`. The entropy coefficient is learned if there is a `target_entropy`.
    """

    _is_top = ["actor", "critic", "critic2", "critic_target", "critic2_target"]  # noqa: RUF012
    _is_restorable = ["actor", "critic_target", "critic2_target"]  # noqa: RUF012
    _pairs: ClassVar[dict[str, str]] = {"critic_target": "critic", "critic2_target": "critic2"}
    _numbers: ClassVar[tuple[str, ...]] = ("_updates", "_log_alpha")

    actor_learning_rate: float = 5e-4
    critic_learning_rate: float = 1e-3
    alpha_learning_rate: float = 1e-3  # of the entropy coefficient
    initial_entropy_alpha: float = 1.0  # entropy coefficient at first
    target_entropy: float | None = None  # none: the entropy coefficient stays as it is
    update_rate: float | None = 0.005  # Polyak averaging of the target critics
    update_steps: int | None = None  # or: updates between copies of the critics

    actor: nn.Module
    critic: nn.Module
    critic_target: nn.Module
    critic2: nn.Module
    critic2_target: nn.Module

    def __init__(
        self,
        actor: nn.Module,
        critic: nn.Module,
        critic_target: nn.Module,
        critic2: nn.Module,
        critic2_target: nn.Module,
        optimizer: OptimizerClass,
        criterion: Criterion,
        **settings: Any,
    ) -> None:
        models = {"actor": actor, "critic": critic, "critic_target": critic_target}
        models |= {"critic2": critic2, "critic2_target": critic2_target}
        super().__init__(models, settings)
        check_rates(self, settings)
        self.criterion, self._updates = criterion, 0
        device = next(actor.parameters()).device
        self._log_alpha = sac.log_alpha(self.initial_entropy_alpha, device)
        critics = dict.fromkeys(("critic", "critic2"), self.critic_learning_rate)
        rates = {"actor": self.actor_learning_rate, **critics, "alpha": self.alpha_learning_rate}
        self._make_optimizers(optimizer, rates)
        self.replay_buffer = self.replay_buffer or Buffer(self.replay_size)

    @property
    def entropy_alpha(self) -> float:
        """The entropy coefficient."""
        return float(sac.alpha_of(self._log_alpha))

    def act(self, state: Mapping[str, Any], **_: Any) -> Any:
        """What the actor gives for a state: action, log-probability and more."""
        with torch.no_grad():
            return bare(call(self.actor, state))

    def update(
        self,
        update_value: bool = True,
        update_policy: bool = True,
        update_target: bool = True,
        update_entropy_alpha: bool = True,
        concatenate_samples: bool = True,
        **_: Any,
    ) -> tuple[float, float]:
        """A gradient step of critics and actor; the policy's mean value, the mean value loss."""
        if not self.replay_buffer.size():
            raise ValueError("there is no step to learn from; call store_episode first")
        agent, self._updates = self._agent, self._updates + 1
        agent.config, agent.memory = self._config(), self.replay_buffer.memory
        moves = self.update_steps is None or self._updates % self.update_steps == 0
        learns = update_entropy_alpha and self.target_entropy is not None
        asked = {"value": update_value, "policy": update_policy, "alpha": learns}
        asked["target"] = update_target and moves
        critics = self._optimizer_of("critic", "critic2")
        agent.descents = (
            GradientStep("critic_loss", agent.critic_loss, critics),
            GradientStep("actor_loss", agent.actor_loss, self._optimizer_of("actor")),
        )
        agent.alpha_optimizer = self._optimizer_of("alpha")
        metrics = self._learn(agent, frozenset(k for k, wanted in asked.items() if wanted))
        return -float(metrics["actor_loss"]), float(metrics["critic_loss"]) / 2

    def _learn(self, agent: sac.SAC, due: frozenset[str]) -> Tensors:
        """One gradient step, with the models that learn in training mode."""
        models = self.actor, self.critic, self.critic2
        for model in models:
            model.train()
        metrics = agent.learn_from(self.replay_buffer.draw(agent.config.batch_size), due)
        for model in models:
            model.eval()
        return metrics

    @staticmethod
    def action_transform_function(raw_output_action: Any, state: Any, others: Any) -> Any:
        """What a raw action of the actor becomes before critics see it; overridable."""
        return raw_output_action

    @staticmethod
    def reward_function(
        reward: Tensor, discount: float, next_value: Tensor, terminal: Tensor, others: Any
    ) -> Tensor:
        """The target of a value; overridable. All are columns `[B, 1]`."""
        raise NotImplementedError  # the agent's own, unless a subclass has another

    def _config(self) -> sac.SACConfig:
        return sac.SACConfig(
            gamma=self.discount,
            tau=tau_of(self.update_rate, self.update_steps),
            batch_size=self.batch_size or self.replay_buffer.size(),
            target_entropy=self.target_entropy,
            learn_alpha=self.target_entropy is not None,
        )

    def _parameters_of(self, name: str) -> list[nn.Parameter]:
        return [self._log_alpha] if name == "alpha" else super()._parameters_of(name)

    @cached_property
    def _agent(self) -> sac.SAC:
        """The agent itself, made of the user's parts when it is first needed."""
        memory = self.replay_buffer.memory
        (name,) = memory.fields["action"]
        space: Any = {name: Box(-np.inf, np.inf, memory.fields["action"][name].shape[2:])}
        hooks = Hooks(
            criterion=on_rows(self.criterion),
            targets={"value": self._critics("_target")},
            backup=user_backup(self, SAC.reward_function),
            draw=lambda out: ({name: out[POLICY + name]}, -out[LOG_PROB].squeeze(-1)),
        )

        def convert(raw: Any, state: Tensors) -> Any:
            return self.action_transform_function(raw, state, None)

        results = NamedResults(self.actor, POLICY + name, LOG_PROB, convert=convert)
        network, critics = CustomNetwork(results), self._critics("")
        agent = sac.SAC(network, critics, space, memory, self._config(), 0, hooks)
        agent.log_alpha = self._log_alpha
        return agent

    def _critics(self, suffix: str) -> Ensemble:
        models = [getattr(self, name + suffix) for name in ("critic", "critic2")]
        return Ensemble([CustomNetwork(NamedResults(model, "value")) for model in models])
