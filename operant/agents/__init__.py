"""The algorithms by name."""

from typing import Any

from operant.agents.actor_critic import ActorCritic, ActorCriticConfig
from operant.agents.dqn import DQN, DQNConfig
from operant.agents.ppo import PPO, PPOConfig
from operant.agents.sac import SAC, SACConfig
from operant.core.config import AgentConfig

AGENTS: dict[str, tuple[Any, type[AgentConfig]]] = {
    "a2c": (ActorCritic, ActorCriticConfig),
    "dqn": (DQN, DQNConfig),
    "ppo": (PPO, PPOConfig),
    "sac": (SAC, SACConfig),
}

__all__ = [
    "AGENTS",
    "DQN",
    "PPO",
    "SAC",
    "ActorCritic",
    "ActorCriticConfig",
    "DQNConfig",
    "PPOConfig",
    "SACConfig",
]
