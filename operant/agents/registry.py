"""The agents by name."""

from __future__ import annotations

from typing import Any

from operant.agents.a2c import A2CConfig, ActorCritic
from operant.agents.dqn import DQN, DQNConfig
from operant.agents.ppo import PPO, PPOConfig
from operant.agents.sac import SAC, SACConfig
from operant.core.config import AgentConfig

AGENTS: dict[str, tuple[Any, type[AgentConfig]]] = {
    "a2c": (ActorCritic, A2CConfig),
    "dqn": (DQN, DQNConfig),
    "ppo": (PPO, PPOConfig),
    "sac": (SAC, SACConfig),
}
