"""A2C and PPO over an actor and a critic of a user's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from operant import agents
from operant.agents.advantages import advantages
from operant.agents.optimizer import GradientStep, Hooks, Losses
from operant.agents.unroll import unroll
from operant.core.config import AgentConfig
from operant.core.experience import Experience
from operant.frameworks.arguments import NamedResults, bare, call
from operant.frameworks.criterion import on_rows
from operant.frameworks.episodes import EpisodeBuffer
from operant.frameworks.framework import Framework, OptimizerClass
from operant.frameworks.told_policy import ENTROPY, LOG_PROB, ToldPolicy
from operant.memory.rollout import RolloutCache
from operant.networks.custom import CustomNetwork
from operant.networks.split import SplitNetwork

POLICY, VALUE = ("policy", "entropy"), ("value",)  # losses by what they move


class A2C(Framework):
    """Advantage actor–critic over `actor(state, action=None)` and `critic(state)`.

    The actor gives an action, its log-probability and the entropy; more passes through `act`.
    """

    _is_top = ["actor", "critic"]  # noqa: RUF012  # the contract's
    _is_restorable = ["actor", "critic"]  # noqa: RUF012
    _agent_class: ClassVar[Any] = agents.A2C
    _config_class: ClassVar[type[AgentConfig]] = agents.A2CConfig

    actor_update_times: int = 5  # gradient steps of the actor in an update
    critic_update_times: int = 10  # likewise of the critic
    actor_learning_rate: float = 1e-3
    critic_learning_rate: float = 1e-3
    entropy_weight: float | None = None  # coefficient of the entropy; negative: a bonus
    value_weight: float = 0.5  # coefficient of the value loss
    gae_lambda: float = 1.0  # GAE lambda
    normalize_advantage: bool = True  # normalise the advantages of a minibatch

    actor: nn.Module
    critic: nn.Module

    def __init__(
        self,
        actor: nn.Module,
        critic: nn.Module,
        optimizer: OptimizerClass,
        criterion: Callable[[Tensor, Tensor], Tensor],
        **settings: Any,
    ) -> None:
        super().__init__({"actor": actor, "critic": critic}, settings)
        self.criterion = criterion
        rates = {"actor": self.actor_learning_rate, "critic": self.critic_learning_rate}
        self._make_optimizers(optimizer, rates)
        self.replay_buffer = self.replay_buffer or EpisodeBuffer()

    def act(self, state: Mapping[str, Any], **_: Any) -> Any:
        """What the actor gives for a state: action, log-probability, entropy and more."""
        with torch.no_grad():
            return bare(call(self.actor, state))

    def _eval_act(self, state: Mapping[str, Any], action: Mapping[str, Any], **_: Any) -> Any:
        """What the actor gives for a state and an action that it is told."""
        return bare(call(self.actor, state, action))

    def _criticize(self, state: Mapping[str, Any], **_: Any) -> Tensor:
        """The critic's value of a state."""
        value: Tensor = call(self.critic, state)[0]
        return value

    def update(
        self,
        update_value: bool = True,
        update_policy: bool = True,
        concatenate_samples: bool = True,
        **_: Any,
    ) -> tuple[float, float]:
        """Learn from all stored episodes, and clear the buffer; the policy's gain, the value loss.

        Each of the two losses takes its number of gradient steps, on minibatches of `batch_size`.
        """
        if not self.replay_buffer.size():
            raise ValueError("there is no episode to learn from; call store_episode first")
        self._agent.config = self._config()
        batch = self._prepared()
        policy = self._improve(batch, update_policy)
        times = self.critic_update_times * (update_value and self.value_weight != 0)
        value = self._learn(batch, "critic", VALUE, times)
        self._forget()
        return -policy, value

    def _prepared(self) -> Any:
        """All that is stored, with advantages and value targets."""
        chunk = self._with_log_prob(self.replay_buffer.read())
        return advantages(self._agent.network, chunk, self.discount, self.gae_lambda)

    def _improve(self, batch: Any, move: bool) -> float:
        """Move the policy; the mean of its loss."""
        return self._learn(batch, "actor", POLICY, self.actor_update_times * move)

    def _forget(self) -> None:
        self.replay_buffer.clear()

    def _learn(self, batch: Any, model: str, losses: tuple[str, ...], times: int) -> float:
        """So many gradient steps of one model; the mean of its loss, also where nothing moves."""
        optimizer = self._optimizer_of(model)
        step = GradientStep("loss", partial(self._losses, losses), optimizer)
        found = []
        module: nn.Module = getattr(self, model)
        for _ in range(times):
            module.train()
            found.append(step(0, self._minibatch(batch))["loss"])
            module.eval()
        if not found:
            with torch.no_grad():
                found = [sum(self._losses(losses, batch)[0].values(), torch.zeros(()))]
        return float(torch.stack(found).mean())

    def _losses(self, names: tuple[str, ...], batch: Any) -> Losses:
        losses, _ = self._agent.compute_loss(batch, batch.valid)
        return {name: loss for name, loss in losses.items() if name in names}, {}

    def _minibatch(self, batch: Any) -> Any:
        rows = len(batch.valid)
        if self.batch_size is None or self.batch_size >= rows:
            return batch
        return batch[torch.randperm(rows)[: self.batch_size]]

    @torch.no_grad()
    def _with_log_prob(self, chunk: Experience) -> Experience:
        """The chunk with log-probabilities under the policy as it is before learning."""
        rows = len(chunk.reward)
        seen = {name: x[:rows] for name, x in chunk.observation.items()}
        now = chunk._replace(observation=seen, first=chunk.first[:rows])
        told = self._agent.distribution
        late = told.late(now.action)
        out = unroll(self._agent.network, now, tuple(told.outputs), late=late)
        return chunk._replace(memo={LOG_PROB: told.log_prob(out, now.action, {})})

    def _config(self) -> AgentConfig:
        """The settings, as the agent calls them."""
        return self._config_class(**self._settings())

    def _settings(self) -> dict[str, Any]:
        return {
            "gamma": self.discount,
            "lam": self.gae_lambda,
            "value_coef": self.value_weight,
            "entropy_coef": -(self.entropy_weight or 0.0),
            "normalize_advantage": self.normalize_advantage,
        }

    @cached_property
    def _agent(self) -> Any:
        """The agent itself, made of the user's parts when it is first needed."""
        networks = {
            "policy": CustomNetwork(NamedResults(self.actor, "action", LOG_PROB, ENTROPY)),
            "value": CustomNetwork(NamedResults(self.critic, "value")),
        }
        owners = {LOG_PROB: "policy", ENTROPY: "policy", "value": "value"}
        actions = self.replay_buffer.episodes[0].chunk.action
        hooks = Hooks(criterion=on_rows(self.criterion), distribution=ToldPolicy(actions))
        network = SplitNetwork(networks, owners)
        return self._agent_class(network, {}, RolloutCache(1), self._config(), 0, hooks)


class PPO(A2C):
    """Proximal policy optimisation: A2C with a clipped surrogate."""

    _agent_class: ClassVar[Any] = agents.PPO
    _config_class: ClassVar[type[AgentConfig]] = agents.PPOConfig

    surrogate_loss_clip: float = 0.2  # clip range of the probability ratio

    def _settings(self) -> dict[str, Any]:
        return super()._settings() | {"clip": self.surrogate_loss_clip}
