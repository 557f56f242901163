"""TRPO over an actor and a critic of a user's own, and the actors that it can learn."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from operant import agents
from operant.agents.advantages import advantages
from operant.agents.critics import NAME
from operant.agents.optimizer import Hooks
from operant.core.config import AgentConfig
from operant.core.errors import UsageError
from operant.core.experience import HiddenState, Tensors
from operant.frameworks.actor_critic import A2C
from operant.frameworks.arguments import NamedResults
from operant.frameworks.criterion import on_rows
from operant.frameworks.framework import OptimizerClass
from operant.frameworks.told_policy import ENTROPY, LOG_PROB, PARAMS, ToldPolicy
from operant.memory.rollout import RolloutCache
from operant.networks.custom import CustomNetwork
from operant.ops import noise, trust_region
from operant.ops.categorical import Categorical, logits_of
from operant.ops.distribution import Part
from operant.ops.gaussian import Gaussian
from operant.ops.value import Criterion

HV_MODES = ("fim", "direct")


class TrustRegionActor(nn.Module):
    """An actor that leaves the parameters of its distribution in `action_param`."""

    action_param: Tensor | None = None
    part: Part

    def get_kl(self, *args: Any, **kwargs: Any) -> Tensor:
        """Mean KL divergence `[1]` from the policy to itself, whose Hessian is Fisher's matrix."""
        self(*args, **kwargs)
        return self.compare_kl(self._params().detach(), *args, **kwargs)

    def compare_kl(self, params: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Mean KL divergence `[1]` from the policy with these parameters to the one of now."""
        self(*args, **kwargs)
        return self.part.kl(params, self._params(), None).mean(0, keepdim=True)

    def get_fim(self, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Fisher's matrix `[B, P, P]` of the distribution's parameters, and those `[B, P]`."""
        self(*args, **kwargs)
        params = self._params()
        return trust_region.fisher_matrix(lambda p, q: self.part.kl(p, q, None), params), params

    def _params(self) -> Tensor:
        if self.action_param is None:
            raise UsageError(f"{type(self).__name__}.forward does not end with self.sample(...)")
        return self.action_param


class ActorDiscrete(TrustRegionActor):
    """Derive from it, and end `forward(state, action=None)` with `self.sample(prob, action)`."""

    def sample(
        self, probability: Tensor, action: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The action `[B, 1]`, drawn unless given, its log-probability and the entropy."""
        self.part = Categorical(probability.shape[-1])
        params = self.action_param = logits_of(probability)
        chosen = noise.prefer(probability, 0.0) if action is None else action.reshape(-1, 1)
        log_prob, entropy = self.part.evaluate(params, chosen.squeeze(-1), None)
        return chosen, log_prob.unsqueeze(-1), entropy.unsqueeze(-1)


class ActorContinuous(TrustRegionActor):
    """Derive from it, and end `forward(state, action=None)` with `self.sample(mean, action)`."""

    def __init__(self, action_dim: int, log_std: float = 0.0) -> None:
        super().__init__()
        self.log_std = nn.Parameter(torch.full((1, action_dim), log_std))
        self.part = Gaussian((action_dim,))

    def sample(self, mean: Tensor, action: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """The action `[B, dim]`, drawn unless given, its log-probability and the entropy."""
        log_std = self.log_std.expand_as(mean)
        params = self.action_param = torch.cat((mean, log_std), -1)
        drawn = noise.normal(mean, mean, log_std.exp()).detach() if action is None else action
        log_prob, entropy = self.part.evaluate(params, drawn, None)
        return drawn, log_prob.unsqueeze(-1), entropy.unsqueeze(-1)


class WithParameters(NamedResults):
    """The results of an actor by name, and the parameters that it left behind."""

    def forward(self, observation: Tensors, state: HiddenState) -> tuple[Tensors, HiddenState]:
        """The results by name."""
        results, state = super().forward(observation, state)
        assert isinstance(self.module, TrustRegionActor)
        return results | {PARAMS: self.module._params()}, state


class TRPO(A2C):
    """Trust region policy optimisation over an `ActorDiscrete` or `ActorContinuous`."""

    _agent_class: ClassVar[Any] = agents.TRPO
    _config_class: ClassVar[type[AgentConfig]] = agents.TRPOConfig

    actor_learning_rate: float = 0.003  # of an optimizer that takes no step
    kl_max_delta: float = 0.01  # trust region: the largest mean KL divergence of an update
    damping: float = 0.1  # what is added to the diagonal of Fisher's matrix
    line_search_backtracks: int = 10  # steps that the line search tries
    conjugate_iterations: int = 10  # iterations of conjugate gradients
    conjugate_eps: float = 1e-8  # without effect: conjugate gradients end by their error alone
    conjugate_res_threshold: float = 1e-10  # likewise
    hv_mode: str = "fim"  # fim or direct: the product with Fisher's matrix is the same

    actor: TrustRegionActor

    def __init__(
        self,
        actor: nn.Module,
        critic: nn.Module,
        optimizer: OptimizerClass,
        criterion: Criterion,
        **settings: Any,
    ) -> None:
        if not isinstance(actor, TrustRegionActor):
            raise UsageError(
                f"actor is a {type(actor).__name__}; TRPO compares policies before and after a "
                f"step, so derive it from ActorDiscrete or ActorContinuous of operant.frameworks"
            )
        super().__init__(actor, critic, optimizer, criterion, **settings)
        if self.hv_mode not in HV_MODES:
            raise UsageError(f"hv_mode = {self.hv_mode!r}: expected one of {', '.join(HV_MODES)}")

    def _prepared(self) -> Any:
        chunk = self._with_log_prob(self.replay_buffer.read())
        return advantages(self._agent.critic, chunk, self.discount, self.gae_lambda, NAME)

    def _improve(self, batch: Any, move: bool) -> float:
        return float(self._agent.improve_policy(batch, move)["policy_gradient_loss"])

    def _settings(self) -> dict[str, Any]:
        return {
            "gamma": self.discount,
            "lam": self.gae_lambda,
            "normalize_advantage": self.normalize_advantage,
            "max_kl": self.kl_max_delta,
            "damping": self.damping,
            "cg_iterations": self.conjugate_iterations,
            "backtracks": self.line_search_backtracks,
        }

    @cached_property
    def _agent(self) -> Any:
        chunk = self.replay_buffer.episodes[0].chunk
        seen = {name.partition(".")[2]: x[0] for name, x in chunk.observation.items()}
        self.act(seen)  # after which the actor knows its distribution
        network = CustomNetwork(WithParameters(self.actor, "action", LOG_PROB, ENTROPY))
        critic = CustomNetwork(NamedResults(self.critic, "value"))

        def weighted(value: Tensor, target: Tensor) -> Tensor:
            return self.value_weight * self.criterion(value, target)

        told = ToldPolicy(chunk.action, self.actor.part)
        hooks = Hooks(criterion=on_rows(weighted), distribution=told)
        return self._agent_class(network, critic, {}, RolloutCache(1), self._config(), 0, hooks)
