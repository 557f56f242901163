"""Deep deterministic policy gradient (DDPG; arXiv:1509.02971), and what became of it.

Twin critics, delayed policy updates and target policy smoothing make it TD3 (arXiv:1802.09477);
rates for rises and falls of a value make it hysteretic (HDDPG; Matignon et al., IROS 2007). All are
settings of one agent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

import torch
from torch import Tensor

from operant.agents.actor import SELECTOR, Actor
from operant.agents.critics import (
    POLICY_NAME,
    Critics,
    CriticState,
    check_bounds,
    critic_losses,
)
from operant.agents.exploration import Noise, NoiseName, NoisySelector
from operant.agents.modes import Modules
from operant.agents.off_policy import Due, OffPolicy, window_error
from operant.agents.optimizer import GradientStep, Hooks, Losses, Optimizer, OptimizerName
from operant.agents.target import Target
from operant.agents.unroll import unroll
from operant.core import tree
from operant.core.config import (
    AgentConfig,
    Count,
    CountOrZero,
    Fraction,
    NotNegative,
    Positive,
    Rate,
    variant,
)
from operant.core.errors import UsageError
from operant.core.experience import Experience, HiddenState, Tensors
from operant.core.protocols import Network, Parts, ReplayMemory
from operant.core.schedule import Schedule
from operant.core.spaces import Shape, Space, choices
from operant.memory.replay_settings import ReplayConfig
from operant.ops import deterministic, policy, value
from operant.ops.distribution import POLICY


@dataclass(frozen=True, kw_only=True)
class DDPGConfig(ReplayConfig, AgentConfig):
    """How DDPG learns."""

    network_defaults = (("hidden", (256, 256)), ("activation", "relu"), ("init", "default"))

    lr: Rate = Schedule(1e-3)  # learning rate: a number, or linear(start, end, steps)
    policy_lr: Rate | None = None  # learning rate of the policy; none: lr
    optimizer: OptimizerName = "adam"  # optimizer, as in torch.optim
    gamma: Fraction = 0.99  # discount factor
    tau: Fraction = 0.005  # Polyak averaging of the target networks
    replay_size: Count = 1_000_000  # size of the replay buffer, in environment steps
    learning_starts: CountOrZero = 1_000  # random exploration steps before the first update
    batch_size: Count = 256  # samples in a batch
    updates_per_step: Positive = 1.0  # gradient steps for each environment step
    critics: Literal[1, 2] = 1  # 2: targets from the lower of two critics (arXiv:1802.09477)
    policy_every: Count = 1  # gradient steps between updates of policy and target networks
    target_noise: NotNegative = 0.0  # std of the noise on actions in targets; 0: no smoothing
    target_noise_clip: NotNegative = 0.5  # the largest such noise
    increase_rate: Fraction = 1.0  # share of a TD error that raises a Q-value (HDDPG)
    decrease_rate: Fraction = 1.0  # share of a TD error that lowers a Q-value (HDDPG)
    exploration: NoiseName = "gaussian"  # noise on actions while training
    exploration_scale: NotNegative | tuple[NotNegative, ...] = 0.1  # its size; a list: by dimension
    exploration_theta: Fraction = 0.15  # how fast Ornstein-Uhlenbeck noise returns to zero
    n_step: Count = 1  # n of the n-step return
    sequence: Count = 16  # consecutive steps in a sample, for recurrent networks
    burn_in: CountOrZero = 0  # steps before those, which only bring the hidden state up to date


DDPGPerConfig = variant(
    *(DDPGConfig, "DDPGPerConfig", "How DDPG learns from a prioritized replay buffer."),
    prioritized=True,
)
HDDPGConfig = variant(
    *(DDPGConfig, "HDDPGConfig", "How hysteretic DDPG learns: slower from what disappoints it."),
    decrease_rate=0.5,
)
TD3Config = variant(
    *(DDPGConfig, "TD3Config", "How TD3 learns."), critics=2, policy_every=2, target_noise=0.2
)


class DDPG(OffPolicy):
    """A policy that climbs its critic, which learns what the policy's actions are worth."""

    saved = (
        *("network", "policy_target", "critics", "actor_optimizer", "critic_optimizer"),
        *("generator", "actor", "memory", "updates"),
    )
    config: DDPGConfig

    def __init__(
        self,
        network: Network,
        critics: Critics,
        action_space: dict[str, Space],
        memory: ReplayMemory,
        config: DDPGConfig,
        seed: int,
        hooks: Hooks = Hooks(),
    ) -> None:
        self.network, self.memory, self.config = network, memory, config
        self.policy_target = Target(network, hooks.targets.get("policy"))
        self.critics, self.hooks, self.backup = critics, hooks, hooks.backup
        noise = Noise(config.exploration, config.exploration_scale, config.exploration_theta)
        self.selector = NoisySelector(action_space, noise, config.learning_starts)
        carried = CriticState(critics.network, critics.continuous) if network.recurrent else None
        self.actor = Actor(network, self.selector, seed, POLICY_NAME, carried)
        # Of the noise on actions in targets.
        self.generator = torch.Generator(self.actor.device).manual_seed(seed)
        rates = {"value": config.lr, "policy": config.policy_lr or config.lr}
        weights = {"value": critics.network.parameters(), "policy": network.parameters()}
        rules = {role: hooks.optimizers.get(role, config.optimizer) for role in rates}
        self.critic_optimizer, self.actor_optimizer = (
            Optimizer(weights[role], rate, None, rules[role]) for role, rate in rates.items()
        )
        critic_step = GradientStep("critic_loss", self.critic_loss, self.critic_optimizer)
        actor_step = GradientStep("actor_loss", self.actor_loss, self.actor_optimizer)
        self.descents = critic_step, actor_step
        self.updates, self.learned = 0, []
        self.windows(network.recurrent)

    @classmethod
    def create(cls, parts: Parts, config: DDPGConfig, seed: int) -> Self:
        """The agent with networks and a replay buffer of its own."""
        actions = parts.spaces.action
        network = parts.network(cls.output_space(actions))
        critics = Critics(Critics.make(parts, config.critics), actions, config.critics)
        return cls(network, critics, actions, parts.replay(config, seed), config, seed)

    @staticmethod
    def output_space(action_space: dict[str, Space]) -> dict[str, Shape]:
        """What the actor must give: the action before tanh, by name."""
        for name, space in action_space.items():
            if choices(space):
                raise UsageError(
                    f"action {name!r} is {space}: a deterministic policy follows the gradient of "
                    f"Q by the action, and a discrete action has none; use sac, ppo or dqn"
                )
        check_bounds(action_space, "DDPG")
        sizes = {name: space.shape or () for name, space in action_space.items()}
        return {POLICY + name: (torch.Size(shape).numel(),) for name, shape in sizes.items()}

    def initial_state(self, batch_size: int) -> HiddenState:
        """The state of `batch_size` fresh episodes: of actor, critics and exploration."""
        state = self.critics.initial_state(self.network, batch_size)
        own = self.selector.initial_state(batch_size)
        return HiddenState(state | {f"{SELECTOR}.{k}": x for k, x in own.items()})

    def due(self) -> Due:
        """The critics, and every `policy_every` gradient steps policy and target networks."""
        delayed = (self.updates + 1) % self.config.policy_every
        return frozenset({"value"} if delayed else {"value", "policy", "target"})

    def normalizing(self) -> tuple[Network, ...]:
        return self.network, self.critics.network

    def mode_dependent(self) -> Modules:
        return self.actor.mode_dependent + self.critics.mode_dependent

    def descend_on(self, batch: Experience, weight: Tensor | None, due: Due) -> Tensors:
        return self.step(batch, weight, due, self.ahead(batch))

    def step(self, batch: Experience, weight: Tensor | None, due: Due, ahead: Tensors) -> Tensors:
        """Move what is due, given the actions `ahead` that follow each step; metrics."""
        critic_step, actor_step = self.descents
        metrics = self.descend(critic_step, batch, weight, ahead, move="value" in due)
        if "policy" in due:
            metrics |= self.descend(actor_step, batch)
        if "target" in due:
            self.policy_target.polyak_update(self.config.tau)
            self.critics.target.polyak_update(self.config.tau)
        return metrics

    @torch.no_grad()
    def ahead(self, batch: Experience) -> Tensors:
        """The target policy's actions `[T, B, ...]` after each step, smoothed if so configured."""
        action = self.propose(self.policy_target.network, batch, (1, len(batch.reward) + 1))
        scale, clip = self.config.target_noise, self.config.target_noise_clip
        if self.hooks.smooth is not None:
            return {name: self.hooks.smooth(x) for name, x in action.items()}
        if not scale:
            return action
        smooth = deterministic.smoothed
        return {name: smooth(x, scale, clip, self.generator) for name, x in action.items()}

    def propose(self, network: Network, batch: Experience, rows: tuple[int, int]) -> Tensors:
        """Actions of a policy in these rows."""
        out = unroll(network, batch, self.selector.outputs, rows, POLICY_NAME)
        if self.hooks.actions is not None:
            return self.hooks.actions(out)
        return deterministic.squashed(out, self.selector.shapes)

    def critic_loss(self, batch: Experience, weight: Tensor | None, ahead: Tensors) -> Losses:
        """½ (Q(s, a) - y)² of each critic over the learned steps (eq. 4); `weight` `[B]`."""
        target = self.targets(batch, ahead)[slice(*self.learned_rows)].unsqueeze(-1)
        q, valid = self.critics.of_taken(batch, self.learned_rows), self.counted(batch)
        rates = self.config.increase_rate, self.config.decrease_rate
        aim = value.hysteretic(q.detach(), target, *rates)
        losses = critic_losses(q, aim, valid, weight, self.hooks.criterion)
        td_error = (q.detach() - target).abs().mean(-1)
        q_values = policy.masked_mean(q.detach().mean(-1), valid)
        return losses, {"q_values": q_values, "td_error": window_error(td_error, valid)}

    def compute_loss(self, batch: Experience, weight: Tensor | None = None) -> Losses:
        """The critics' losses by name, with the target policy's actions, and metrics."""
        return self.critic_loss(batch, weight, self.ahead(batch))

    @torch.no_grad()
    def targets(self, batch: Experience, ahead: Tensors) -> Tensor:
        """n-step targets `[T, B]`: y = r + γ min_i Q'_i(s', a'), a' from `ahead` (eq. 5)."""
        rows = (1, len(batch.reward) + 1)
        q = self.critics.outputs(self.critics.target.network, batch, ahead, rows)
        return self.n_step(batch, self.critics.lowest_expected(q, {}, {}))

    def actor_loss(self, batch: Experience) -> Losses:
        """-Q(s, μ(s)) of the first critic over the learned steps (eq. 6).

        Actions that are not this policy's own stay as they were taken.
        """
        rows = self.learned_rows
        taken = tree.index(batch.action, slice(*rows))
        action = taken | self.propose(self.network, batch, rows)
        q = self.critics.outputs(self.critics.network, batch, action, rows)["value"]
        return {"actor": -policy.masked_mean(q[..., 0, 0], self.counted(batch))}, {}
