"""The algorithms by name."""

from typing import Any

from operant.agents.a2c import A2C, A2CConfig, ActorCritic
from operant.agents.dqn import DQN, DQNConfig
from operant.agents.ppo import PPO, PPOConfig
from operant.agents.sac import SAC, SACConfig
from operant.core.config import AgentConfig

AGENTS: dict[str, tuple[Any, Any]] = {
    "a2c": (ActorCritic, A2CConfig),
    "dqn": (DQN, DQNConfig),
    "ppo": (PPO, PPOConfig),
    "sac": (SAC, SACConfig),
}

__all__ = [
    "A2C",
    "AGENTS",
    "DQN",
    "PPO",
    "SAC",
    "A2CConfig",
    "ActorCritic",
    "AgentConfig",
    "DQNConfig",
    "PPOConfig",
    "SACConfig",
]
