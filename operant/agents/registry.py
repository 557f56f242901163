"""The agents by name, and those of the user's own by path, `module:Class`."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

from operant.agents.a2c import A2CConfig, ActorCritic
from operant.agents.acer import ACER, ACERConfig, ACERVTrace, ACERVTraceConfig
from operant.agents.ddpg import DDPG, DDPGConfig, DDPGPerConfig, HDDPGConfig, TD3Config
from operant.agents.dqn import DQN, DQNConfig, DQNPerConfig, RainbowConfig
from operant.agents.maddpg import MADDPG, MADDPGConfig
from operant.agents.ppo import PPO, PPOConfig
from operant.agents.sac import SAC, SACConfig
from operant.agents.trpo import TRPO, TRPOConfig
from operant.agents.vtrace import ActorCriticVTrace, VTraceConfig
from operant.core.annotations import annotation_of
from operant.core.config import AgentConfig
from operant.core.errors import UsageError, suggest
from operant.core.objects import find, is_name, name_of


class Algorithm(NamedTuple):
    """A built-in agent: its class, its settings, and what `operant list agents` says of it."""

    cls: type[Any]
    config: type[AgentConfig]  # of a variant, such as TD3, other defaults of the same settings
    family: str
    actions: str  # kinds of action spaces
    paper: str


POLICY_GRADIENT, VALUE, ACTOR_CRITIC = "policy gradient", "value", "actor–critic with replay"
SEVERAL = "several agents"
DISCRETE, CONTINUOUS, ANY = "discrete", "continuous", "discrete, continuous"
AGENTS: dict[str, Algorithm] = {
    "a2c": Algorithm(ActorCritic, A2CConfig, POLICY_GRADIENT, ANY, "arXiv:1602.01783"),
    "ppo": Algorithm(PPO, PPOConfig, POLICY_GRADIENT, ANY, "arXiv:1707.06347"),
    "trpo": Algorithm(TRPO, TRPOConfig, POLICY_GRADIENT, ANY, "arXiv:1502.05477"),
    "vtrace": Algorithm(ActorCriticVTrace, VTraceConfig, POLICY_GRADIENT, ANY, "arXiv:1802.01561"),
    "acer": Algorithm(ACER, ACERConfig, ACTOR_CRITIC, DISCRETE, "arXiv:1611.01224"),
    "acer-vtrace": Algorithm(
        ACERVTrace, ACERVTraceConfig, ACTOR_CRITIC, DISCRETE, "arXiv:1611.01224, 1802.01561"
    ),
    "dqn": Algorithm(DQN, DQNConfig, VALUE, DISCRETE, "Nature 518, 529 (2015)"),
    "dqn-per": Algorithm(DQN, DQNPerConfig, VALUE, DISCRETE, "arXiv:1511.05952"),
    "rainbow": Algorithm(DQN, RainbowConfig, VALUE, DISCRETE, "arXiv:1710.02298"),
    "ddpg": Algorithm(DDPG, DDPGConfig, ACTOR_CRITIC, CONTINUOUS, "arXiv:1509.02971"),
    "ddpg-per": Algorithm(DDPG, DDPGPerConfig, ACTOR_CRITIC, CONTINUOUS, "arXiv:1511.05952"),
    "hddpg": Algorithm(DDPG, HDDPGConfig, ACTOR_CRITIC, CONTINUOUS, "IROS 2007, 64"),
    "td3": Algorithm(DDPG, TD3Config, ACTOR_CRITIC, CONTINUOUS, "arXiv:1802.09477"),
    "maddpg": Algorithm(MADDPG, MADDPGConfig, SEVERAL, ANY, "arXiv:1706.02275"),
    "sac": Algorithm(SAC, SACConfig, ACTOR_CRITIC, ANY, "arXiv:1812.05905"),
}
MEMBERS = ("create", "act", "update", "state_dict", "load_state_dict")  # that a class must have
CREATE = "create(parts, config: MyConfig, seed)"
OF_YOUR_OWN = "; one of your own is named by its module and class, such as my_module:MyAgent"
DECORATED = "@dataclass(frozen=True, kw_only=True)"


def agent_name(agent: str | type[Any]) -> str:
    """The name of an agent as configurations hold it, of a class or as papers write it."""
    if isinstance(agent, str):
        return agent.lower() if agent.lower() in AGENTS else agent
    return next((name for name, known in AGENTS.items() if known.cls is agent), name_of(agent))


def agent_class(name: str) -> type[Any]:
    """The class of an agent, by its name or path; its `create` makes the agent."""
    if name in AGENTS:
        return AGENTS[name].cls
    if not is_name(name):
        near = suggest(name, AGENTS)
        remedy = near if "did you mean" in near else near + OF_YOUR_OWN
        raise UsageError(f"agent {name!r} is unknown{remedy}")
    found = find(name, "algorithm")
    if not isinstance(found, type):
        raise UsageError(
            f"algorithm = {name!r}: is a {type(found).__name__}; expected a class that extends "
            f"operant.agents.AgentBase"
        )
    lacking = [member for member in MEMBERS if not callable(getattr(found, member, None))]
    if lacking:
        raise UsageError(
            f"algorithm = {name!r}: lacks {', '.join(lacking)}; expected an agent, such as a "
            f"class that extends operant.agents.AgentBase, with {CREATE} and update()"
        )
    return found


def config_class(name: str) -> type[AgentConfig]:
    """The class of an agent's settings, by its name or path."""
    return AGENTS[name].config if name in AGENTS else config_of(agent_class(name))


def config_of(cls: type[Any]) -> type[AgentConfig]:
    """The settings of a class of the user's own: what `config` is annotated as in its `create`."""
    where = f"algorithm = '{cls.__module__}:{cls.__qualname__}'"
    try:
        found = annotation_of(cls.create, "config")
    except NameError as error:
        raise UsageError(
            f"{where}: create's `config` is annotated as something that its module does not have "
            f"at run time ({error}); import or define it there"
        ) from None
    if found is None:
        raise UsageError(f"{where}: create's `config` has no annotation; expected {CREATE}")
    if not (isinstance(found, type) and issubclass(found, AgentConfig)):
        raise UsageError(
            f"{where}: create's `config` is annotated as {found!r}; expected a class that extends "
            f"operant.core.AgentConfig"
        )
    _check_settings(where, found)
    return found


def _check_settings(where: str, config: type[AgentConfig]) -> None:
    """Refuse settings that cannot be read, or that would silently not be there."""
    if "__dataclass_params__" not in vars(config):
        raise UsageError(f"{where}: {config.__name__} is no dataclass; write {DECORATED} above it")
    for field in dataclasses.fields(config):
        if field.default is field.default_factory:  # both are missing
            raise UsageError(
                f"{where}: the setting {field.name!r} of {config.__name__} has no default; "
                f"expected one, such as `{field.name}: int = 1`"
            )
