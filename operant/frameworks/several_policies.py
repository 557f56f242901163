"""MADDPG over actors and critics of a user's own: lists in, lists out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium.spaces import Box
from torch import Tensor, nn

from operant.agents import maddpg
from operant.agents.critics import Critics
from operant.agents.optimizer import GradientStep, Hooks
from operant.core.errors import UsageError
from operant.core.experience import Experience, Tensors
from operant.core.several import named_for, own
from operant.frameworks.arguments import ACTION, STATE, NamedResults, bare, call, plain_names
from operant.frameworks.buffer import Buffer
from operant.frameworks.criterion import on_rows
from operant.frameworks.episode import Step, episode_of
from operant.frameworks.exploration_noise import NoiseMaker
from operant.frameworks.framework import Framework, OptimizerClass
from operant.frameworks.replaying import check_rates, tau_of, user_backup
from operant.networks.custom import CustomNetwork
from operant.ops import noise
from operant.ops.distribution import POLICY
from operant.ops.value import Criterion

States = Sequence[Mapping[str, Any]]  # one an agent
MODELS = ("actors", "actor_targets", "critics", "critic_targets")


class MADDPG(Framework):
    """Multi-agent DDPG: an actor and a critic for each agent, in lists of one order.

    A critic sees the states and actions of the agents in `critic_visible_actors`, joined by
    `state_concat_function` and `action_concat_function`.
    """

    _is_top = [*MODELS]  # noqa: RUF012  # the contract's
    _is_restorable = ["actor_targets", "critic_targets"]  # noqa: RUF012
    _pairs: ClassVar[dict[str, str]] = {"actor_targets": "actors", "critic_targets": "critics"}
    _numbers: ClassVar[tuple[str, ...]] = ("_updates", "_noise")

    critic_visible_actors: Sequence[Sequence[int]] | None = None  # by critic; none: all
    sub_policy_num: int = 0  # expected to be 0: there is one policy for each agent
    actor_learning_rate: float = 5e-4
    critic_learning_rate: float = 1e-3
    update_rate: float | None = 0.001  # Polyak averaging of the target networks
    update_steps: int | None = None  # or: updates between copies of the networks
    use_jit: bool = True  # without effect
    pool_type: str = "thread"  # without effect
    pool_size: int | None = None  # without effect

    actors: nn.ModuleList
    actor_targets: nn.ModuleList
    critics: nn.ModuleList
    critic_targets: nn.ModuleList

    def __init__(
        self,
        actors: Sequence[nn.Module],
        actor_targets: Sequence[nn.Module],
        critics: Sequence[nn.Module],
        critic_targets: Sequence[nn.Module],
        optimizer: OptimizerClass,
        criterion: Criterion,
        **settings: Any,
    ) -> None:
        given = (actors, actor_targets, critics, critic_targets)
        if len({len(x) for x in given}) != 1 or not actors:
            sizes = ", ".join(f"{k}: {len(x)}" for k, x in zip(MODELS, given, strict=True))
            raise UsageError(f"{sizes}; expected four lists of the same length, one for each agent")
        lists = {k: nn.ModuleList(x) for k, x in zip(MODELS, given, strict=True)}
        super().__init__(lists, settings)
        check_rates(self, settings)
        self._visible = _visible(self.critic_visible_actors, len(actors))
        if self.sub_policy_num:
            raise UsageError(
                f"sub_policy_num = {self.sub_policy_num}: expected 0; ensembles of policies are a "
                f"setting of the agent, `operant train maddpg --agent.sub_policies`"
            )
        self.criterion, self._updates, self._noise = criterion, 0, NoiseMaker()
        rates = {f"actors.{i}": self.actor_learning_rate for i in range(len(actors))}
        rates |= {f"critics.{i}": self.critic_learning_rate for i in range(len(actors))}
        self._make_optimizers(optimizer, rates)
        self.replay_buffer = self.replay_buffer or Buffer(self.replay_size)

    # Acting

    def act(self, states: States, use_target: bool = False, **_: Any) -> list[Any]:
        """Each actor's action `[B, dim]`, or a tuple of it and whatever else the actor gives."""
        return [bare(results) for results in self._ask(states, use_target)]

    def act_with_noise(
        self,
        states: States,
        noise_param: Any = (0.0, 1.0),
        ratio: float = 1.0,
        mode: str = "uniform",
        use_target: bool = False,
        **_: Any,
    ) -> list[Any]:
        """As `act`, plus `ratio` times noise; see `DDPG.act_with_noise`."""
        return [
            bare((action + ratio * self._noise(action, mode, noise_param, f"{i}:"), *others))
            for i, (action, *others) in enumerate(self._ask(states, use_target))
        ]

    def act_discrete(self, states: States, use_target: bool = False, **_: Any) -> list[Any]:
        """Each actor's most probable action `[B, 1]`, its probabilities, and whatever else."""
        return self.act_discrete_with_noise(states, use_target, 1.0)

    def act_discrete_with_noise(
        self, states: States, use_target: bool = False, choose_max_prob: float = 0.95, **_: Any
    ) -> list[Any]:
        """The most probable action with probability `choose_max_prob`, else drawn: row by row."""
        return [
            (noise.prefer(probability, choose_max_prob), probability, *others)
            for probability, *others in self._ask(states, use_target)
        ]

    act_discreet, act_discreet_with_noise = act_discrete, act_discrete_with_noise

    def _ask(self, states: States, use_target: bool) -> list[tuple[Any, ...]]:
        actors = self.actor_targets if use_target else self.actors
        if len(states) != len(actors):
            raise UsageError(
                f"there are {len(states)} states; expected {len(actors)}, one an actor"
            )
        with torch.no_grad():
            return [call(actor, state) for actor, state in zip(actors, states, strict=True)]

    def _criticize(
        self, states: States, actions: States, index: int, use_target: bool = False
    ) -> Tensor:
        """What one critic makes of the states and actions of all agents."""
        critic = (self.critic_targets if use_target else self.critics)[index]
        shown = self._joined([states[j] for j in self._visible[index]],
                             [actions[j] for j in self._visible[index]])  # fmt: skip
        value: Tensor = call(critic, shown)[0]
        return value

    # Storing

    def store_episodes(self, episodes: Sequence[Sequence[Step]]) -> None:
        """Check an episode of each agent, all of one length, and store them together."""
        if len(episodes) != len(self.actors):
            raise UsageError(
                f"there are {len(episodes)} episodes; expected {len(self.actors)}, one an agent"
            )
        self.replay_buffer.store_chunk(_together([_checked(i, x) for i, x in enumerate(episodes)]))

    def store_episode(self, episode: Sequence[Step]) -> None:
        """Not here: what happened to all agents is stored together."""
        raise UsageError("MADDPG stores an episode of every agent at once; use store_episodes")

    # Learning

    def update(
        self,
        update_value: bool = True,
        update_policy: bool = True,
        update_target: bool = True,
        concatenate_samples: bool = True,
        **_: Any,
    ) -> tuple[float, float]:
        """A gradient step of every critic and actor; means of policy values and value losses."""
        if not self.replay_buffer.size():
            raise ValueError("there is no step to learn from; call store_episodes first")
        agent, self._updates = self._agent, self._updates + 1
        agent.config, agent.memory = self._config(), self.replay_buffer.memory
        moves = self.update_steps is None or self._updates % self.update_steps == 0
        asked = {"value": update_value, "policy": update_policy, "target": update_target and moves}
        for name, member in agent.members.items():
            member.config = agent.config
            optimizers = [
                self._optimizer_of(f"{models}.{name}") for models in ("critics", "actors")
            ]
            member.descents = (
                GradientStep("critic_loss", member.critic_loss, optimizers[0]),
                GradientStep("actor_loss", member.actor_loss, optimizers[1]),
            )
        drawn = self.replay_buffer.draw(agent.config.batch_size)
        self.actors.train(), self.critics.train()
        metrics = agent.learn_from(drawn, frozenset(k for k, wanted in asked.items() if wanted))
        self.actors.eval(), self.critics.eval()
        if not update_policy:  # they did not move, and are told all the same
            with torch.no_grad():
                metrics |= self._actor_losses(agent, drawn.experience)
        count = len(self.actors)
        policy = sum(float(metrics[f"{i}/actor_loss"]) for i in range(count))
        return -policy / count, sum(
            float(metrics[f"{i}/critic_loss"]) for i in range(count)
        ) / count

    def _actor_losses(self, agent: maddpg.MADDPG, batch: Experience) -> Tensors:
        views = [agent.view(batch, i) for i in range(len(self.actors))]
        pairs = zip(agent.members.items(), views, strict=True)
        return {f"{k}/actor_loss": x.actor_loss(view)[0]["actor"] for (k, x), view in pairs}

    @staticmethod
    def action_transform_function(raw_output_action: Any, state: Any, others: Any) -> Any:
        """What a raw action of an actor becomes before critics see it; overridable."""
        return raw_output_action

    @staticmethod
    def action_concat_function(actions: Sequence[Mapping[str, Tensor]], *_: Any) -> Any:
        """Actions of several agents as one critic reads them; overridable."""
        return _side_by_side(actions)

    @staticmethod
    def state_concat_function(states: Sequence[Mapping[str, Tensor]], *_: Any) -> Any:
        """States of several agents as one critic reads them; overridable."""
        return _side_by_side(states)

    @staticmethod
    def reward_function(
        reward: Tensor, discount: float, next_value: Tensor, terminal: Tensor, others: Any
    ) -> Tensor:
        """The target of a value; overridable. All are columns `[B, 1]`."""
        raise NotImplementedError  # the agent's own, unless a subclass has another

    def _config(self) -> maddpg.MADDPGConfig:
        return maddpg.MADDPGConfig(
            gamma=self.discount,
            tau=tau_of(self.update_rate, self.update_steps),
            batch_size=self.batch_size or self.replay_buffer.size(),
        )

    def _parameters_of(self, name: str) -> list[nn.Parameter]:
        models, _, number = name.partition(".")
        return list(getattr(self, models)[int(number)].parameters())

    @cached_property
    def _agent(self) -> maddpg.MADDPG:
        """The agent itself, made of the user's parts when it is first needed."""
        config, memory = self._config(), self.replay_buffer.memory
        spaces = {k: Box(-np.inf, np.inf, x.shape[2:]) for k, x in memory.fields["action"].items()}
        members = {str(i): self._member(i, spaces, config) for i in range(len(self.actors))}
        return maddpg.MADDPG(members, memory, config)

    def _member(
        self, i: int, spaces: Mapping[str, Any], config: maddpg.MADDPGConfig
    ) -> maddpg.Member:
        """One agent: its actor, its critic, and their targets."""
        mine = named_for(own(spaces, str(i)), str(i))
        wide = {
            k: x
            for j in self._visible[i]
            for k, x in named_for(own(spaces, str(j)), str(j)).items()
        }
        hooks = Hooks(
            criterion=on_rows(self.criterion),
            targets={"policy": self._actor(self.actor_targets[i], i, tuple(mine))},
            backup=user_backup(self, MADDPG.reward_function),
            actions=lambda out: {name: out[POLICY + name] for name in mine},
        )
        target = self._critic(self.critic_targets[i], i)
        critics = Critics(self._critic(self.critics[i], i), wide, 1, target)
        actor, several = self._actor(self.actors[i], i, tuple(mine)), len(self.actors) > 1
        return maddpg.Member(actor, critics, mine, config, i, str(i), several, hooks)

    def _actor(self, model: nn.Module, i: int, names: tuple[str, ...]) -> CustomNetwork:
        def convert(raw: Any, state: Tensors) -> Any:
            made = self.action_transform_function(raw, state, None)
            return (
                {f"{POLICY}{i}.{k}": x for k, x in made.items()}
                if isinstance(made, Mapping)
                else made
            )

        outputs = [POLICY + k for k in names]
        reads: Callable[[Tensors], Tensors] = lambda seen: own(plain_names(seen), str(i))  # noqa: E731
        return CustomNetwork(NamedResults(model, *outputs, convert=convert, reads=reads))

    def _critic(self, model: nn.Module, i: int) -> CustomNetwork:
        def reads(shown: Tensors) -> Tensors:
            seen, told = (
                plain_names({k: x for k, x in shown.items() if k.startswith(begin)})
                for begin in (STATE, ACTION)
            )
            visible = [str(j) for j in self._visible[i]]
            return self._joined([own(seen, j) for j in visible], [own(told, j) for j in visible])

        return CustomNetwork(NamedResults(model, "value", reads=reads))

    def _joined(self, states: States, actions: States) -> Tensors:
        return {**self.state_concat_function(states), **self.action_concat_function(actions)}


def _visible(asked: Sequence[Sequence[int]] | None, count: int) -> list[list[int]]:
    """Whom each critic sees, by number."""
    found = [list(range(count))] * count if asked is None else [list(x) for x in asked]
    fits = len(found) == count and all(i in x for i, x in enumerate(found))
    if not fits or any(not 0 <= j < count for x in found for j in x):
        raise UsageError(
            f"critic_visible_actors = {asked}: expected {count} lists of numbers from 0 to "
            f"{count - 1}, each with the number of its own actor"
        )
    return found


def _checked(i: int, steps: Sequence[Step]) -> Experience:
    try:
        return episode_of(steps).chunk
    except UsageError as error:
        raise UsageError(f"agent {i}: {error}") from None


def _together(chunks: Sequence[Experience]) -> Experience:
    """What happened to several agents as one chunk, whose names begin with the agent's number."""
    lengths = [len(chunk.reward) for chunk in chunks]
    if len(set(lengths)) > 1:
        raise UsageError(f"the episodes have {lengths} steps; expected as many of every agent")

    def named(field: str, prefix: str = "") -> Tensors:
        each = [(str(i), getattr(chunk, field)) for i, chunk in enumerate(chunks)]
        return {f"{prefix}{i}.{k.removeprefix(prefix)}": x for i, of in each for k, x in of.items()}

    def side(field: str) -> Tensor:
        return torch.stack([getattr(chunk, field) for chunk in chunks], -1)

    terminated, replaced = side("terminated").all(-1), side("replaced").any(-1)
    return chunks[0]._replace(
        observation=named("observation", STATE),
        final_observation=named("final_observation", STATE),
        action=named("action"),
        memo=named("memo"),
        first=side("first").any(-1),
        reward=side("reward").sum(-1),
        terminated=terminated,
        truncated=replaced & ~terminated,
        replaced=replaced,
        agents={k: side(k) for k in ("reward", "terminated", "valid")},
    )


def _side_by_side(parts: Sequence[Mapping[str, Tensor]]) -> Tensors:
    return {k: torch.cat([part[k] for part in parts], 1) for k in parts[0]}
