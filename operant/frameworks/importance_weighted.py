"""IMPALA in one process, over an actor and a critic of a user's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from operant import agents
from operant.core.config import AgentConfig
from operant.core.errors import UsageError
from operant.frameworks.actor_critic import A2C
from operant.frameworks.episode import Step, joined
from operant.frameworks.framework import OptimizerClass
from operant.frameworks.told_policy import LOG_PROB

BEHAVIOR = "action_log_prob"  # what each step must tell


class IMPALA(A2C):
    """Actor–critic with V-trace: learns from episodes of older policies too.

    Each step carries `action_log_prob`, the log-probability with which its action was taken. An
    update draws `batch_size` of the last `replay_size` episodes, and clears nothing. Learning from
    other processes comes with the containers; here `set_sync` and `manual_sync` have no effect.
    """

    _agent_class: ClassVar[Any] = agents.ActorCriticVTrace
    _config_class: ClassVar[type[AgentConfig]] = agents.VTraceConfig

    batch_size: int | None = 5  # episodes in a batch
    replay_size: int = 500  # episodes held
    actor_update_times: int = 1
    critic_update_times: int = 1
    normalize_advantage: bool = False
    isw_clip_c: float = 1.0  # largest importance weight by which errors are traced back
    isw_clip_rho: float = 1.0  # largest importance weight of an error and of the policy gradient

    def __init__(
        self,
        actor: nn.Module,
        critic: nn.Module,
        optimizer: OptimizerClass,
        criterion: Callable[[Tensor, Tensor], Tensor],
        impala_group: Any = None,
        model_server: Any = None,
        **settings: Any,
    ) -> None:
        for name, given in (("impala_group", impala_group), ("model_server", model_server)):
            if given is not None:
                raise UsageError(
                    f"{name}: IMPALA learns in one process here; leave it out, or train the agent "
                    f"`vtrace` with a sampler of several processes"
                )
        super().__init__(actor, critic, optimizer, criterion, **settings)

    def store_episode(self, episode: Sequence[Step]) -> None:
        """Check a whole episode, and store it; the oldest is forgotten when there are too many."""
        for t, step in enumerate(episode):
            told = step.get(BEHAVIOR) if isinstance(step, dict) else getattr(step, BEHAVIOR, None)
            if told is None or not math.isfinite(float(told)):
                raise UsageError(
                    f"step {t}: {BEHAVIOR} = {told}; expected the log-probability that act gave"
                )
        super().store_episode(episode)
        del self.replay_buffer.episodes[: -self.replay_size]

    def set_sync(self, is_syncing: bool) -> None:
        """Without effect in one process."""

    def manual_sync(self, *_: Any) -> None:
        """Without effect in one process."""

    def _prepared(self) -> Any:
        held = self.replay_buffer.episodes
        chosen = torch.randperm(len(held))[: self.batch_size].tolist()
        chunk = joined([held[i].chunk for i in chosen])
        return self._agent.prepare(chunk._replace(memo={LOG_PROB: chunk.memo[BEHAVIOR]}))

    def _minibatch(self, batch: Any) -> Any:
        return batch

    def _forget(self) -> None:
        """Episodes may be learned from again."""

    def _settings(self) -> dict[str, Any]:
        rho = self.isw_clip_rho
        bounds = {"c": self.isw_clip_c, "rho": rho, "rho_policy": rho}
        return super()._settings() | bounds
