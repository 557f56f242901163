"""rlpyt's names for the learning half of an agent."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from operant.agents import dqn, ppo, sac
from operant.agents.a2c import ActorCritic
from operant.agents.advantages import Batch, advantages
from operant.agents.optimizer import total
from operant.core import tree
from operant.core.errors import UsageError
from operant.core.experience import Experience, Tensors
from operant.ops.distribution import masks_of


class BatchSpec(NamedTuple):
    """The shape of a chunk: `T` steps of `B` environments."""

    T: int
    B: int

    @property
    def size(self) -> int:
        """Environment steps in a chunk."""
        return self.T * self.B


class OptInfo(NamedTuple):
    """What each gradient step saw: a list a field, empty where the agent has no such thing."""

    loss: list[float]
    gradNorm: list[float]  # noqa: N815  # rlpyt's spelling
    entropy: list[float]
    perplexity: list[float]  # the exponential of the mean entropy


class AgentInputs(NamedTuple):
    """What an agent is shown, `[T, B, ...]`; only the observation and `first` are looked at."""

    observation: Tensors
    prev_action: Tensors | None = None
    prev_reward: Tensor | None = None
    first: Tensor | None = None  # where an episode begins, and memory anew; None: nowhere


class AgentTrain(NamedTuple):
    """What an agent gives when it learns: the policy's parameters by action, and the value."""

    dist_info: Tensors
    value: Tensor


class RLAlgorithm:
    """Teaches an agent from samples, knowing nothing of environments."""

    opt_info_fields = OptInfo._fields
    agent_class: Any = object  # of the agents that it teaches

    agent: Any
    batch_spec: BatchSpec

    def initialize(
        self,
        agent: Any,
        n_itr: int,
        batch_spec: BatchSpec,
        mid_batch_reset: bool,
        examples: dict[str, Any],
        world_size: int = 1,
        rank: int = 0,
    ) -> None:
        """Take an agent to teach; `examples` holds one observation as its environment shows it.

        `mid_batch_reset` says whether environments reset inside a batch; the record marks the
        steps that do not count, so both are learned from alike.
        """
        if not isinstance(agent, self.agent_class):
            ours, theirs = type(self).__name__, type(agent).__name__
            raise UsageError(f"agent: {ours} teaches a {ours} agent, not a {theirs}")
        length = agent.config.length
        if length != batch_spec.T:
            raise UsageError(f"batch_spec.T = {batch_spec.T}: expected the agent's {length}")
        if world_size != 1 or rank != 0:
            raise UsageError(
                f"world_size = {world_size}, rank = {rank}: this algorithm teaches one agent in "
                f"one process; expected 1 and 0"
            )
        shown = tree.map(lambda x: torch.as_tensor(x)[None], examples["observation"])
        agent.act(shown, agent.initial_state(1), explore=False)  # says so if it does not fit
        self.agent, self.n_itr, self.batch_spec = agent, n_itr, batch_spec
        self.mid_batch_reset = mid_batch_reset

    def optimize_agent(self, itr: int, samples: Experience | None = None) -> OptInfo:
        """Store the samples, if any, and learn what is due."""
        if samples is not None:
            self.agent.memory.store(samples)
        self.agent.learned = []
        self.agent.update()
        steps = [{name: float(x.detach()) for name, x in s.items()} for s in self.agent.learned]
        entropy = [-s["entropy_loss"] if "entropy_loss" in s else s.get("entropy") for s in steps]
        known = [x for x in entropy if x is not None]
        return OptInfo(
            loss=[s["loss"] if "loss" in s else s["critic_loss"] for s in steps],
            gradNorm=[s["grad_norm"] for s in steps if "grad_norm" in s],
            entropy=known,
            perplexity=[math.exp(x) for x in known],
        )

    def optim_state_dict(self) -> dict[str, Any]:
        """Everything that learning goes on from."""
        state: dict[str, Any] = self.agent.state_dict()
        return state

    def load_optim_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `optim_state_dict` gave."""
        self.agent.load_state_dict(state)


class PolicyGradientAlgo(RLAlgorithm):
    """Teaches an agent that has a policy and a value: A2C or PPO, as the agent is."""

    def process_returns(self, samples: Experience) -> tuple[Tensor, Tensor, Tensor | None]:
        """Returns and advantages `[T, B]`, and which steps count (None: all).

        For an agent with memory, none after the first reset, as in rlpyt: `loss` is then right
        without `first`. With it, `samples.valid` is enough.
        """
        config = self.agent.config
        batch = advantages(self.agent.network, samples, config.gamma, config.lam)
        valid = batch.valid
        if self.agent.network.recurrent:
            valid = valid & ~begun_since(batch.first)
        return batch.target, batch.advantage, None if valid.all() else valid

    def loss(
        self,
        agent_inputs: AgentInputs,
        action: Tensors,
        return_: Tensor,
        advantage: Tensor,
        valid: Tensor | None,
        old_dist_info: Tensors,
        init_rnn_state: Tensors | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The loss to minimise, and the policy's mean entropy and perplexity.

        `old_dist_info` are the policy's parameters by action when it acted; `init_rnn_state` is
        the hidden state `[B, ...]` before the first step, None a fresh one.
        """
        everywhere = torch.ones_like(advantage, dtype=torch.bool)
        state = init_rnn_state or self.agent.initial_state(advantage.shape[-1])
        distribution = self.agent.distribution
        masks = masks_of(agent_inputs.observation, distribution.parts)
        old = {
            name: part.log_prob(old_dist_info[name], action[name], masks.get(name))
            for name, part in distribution.parts.items()
        }
        batch = Batch(
            observation=agent_inputs.observation,
            hidden_state={k: x[None] for k, x in state.items()},
            first=~everywhere if agent_inputs.first is None else agent_inputs.first,
            action=action,
            log_prob=total(old),
            advantage=advantage,
            target=return_,
            valid=everywhere if valid is None else valid,
        )
        losses, metrics = self.agent.compute_loss(batch, valid)
        entropy = -metrics["entropy_loss"]
        return total(losses), entropy, entropy.exp()


def begun_since(first: Tensor) -> Tensor:
    """Steps `[T, B]` with the beginning of an episode between them and the first row."""
    later = first.clone()
    later[0] = False
    return later.cumsum(0) > 0


class A2C(PolicyGradientAlgo):
    """Teaches an A2C agent."""

    agent_class = ActorCritic


class PPO(PolicyGradientAlgo):
    """Teaches a PPO agent."""

    agent_class = ppo.PPO


class DQN(RLAlgorithm):
    """Teaches a DQN agent."""

    agent_class = dqn.DQN


class SAC(RLAlgorithm):
    """Teaches a SAC agent."""

    agent_class = sac.SAC


RlAlgorithm = RLAlgorithm  # rlpyt spells the class so
