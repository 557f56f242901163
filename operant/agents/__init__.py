"""The algorithms, one file each: settings, what acting leaves behind, update and loss.

They extend one small base (`agent.py`), act through an `Actor` that can be sent to another process,
and learn through one gradient seam (`optimizer.py`). They know no environment and no network class.
"""

from typing import TYPE_CHECKING

from operant.core.lazy import lazy_names

if TYPE_CHECKING:
    from operant.agents.a2c import A2C as A2C
    from operant.agents.a2c import A2CConfig as A2CConfig
    from operant.agents.a2c import ActorCritic as ActorCritic
    from operant.agents.acer import ACER as ACER
    from operant.agents.acer import ACERConfig as ACERConfig
    from operant.agents.acer import ACERVTrace as ACERVTrace
    from operant.agents.acer import ACERVTraceConfig as ACERVTraceConfig
    from operant.agents.actor import ActionSelector as ActionSelector
    from operant.agents.actor import Actor as Actor
    from operant.agents.actor import PolicySelector as PolicySelector
    from operant.agents.agent import AgentBase as AgentBase
    from operant.agents.ddpg import DDPG as DDPG
    from operant.agents.ddpg import DDPGConfig as DDPGConfig
    from operant.agents.dqn import DQN as DQN
    from operant.agents.dqn import DQNConfig as DQNConfig
    from operant.agents.dqn import DQNPerConfig as DQNPerConfig
    from operant.agents.dqn import RainbowConfig as RainbowConfig
    from operant.agents.maddpg import MADDPG as MADDPG
    from operant.agents.maddpg import MADDPGConfig as MADDPGConfig
    from operant.agents.off_policy import OffPolicy as OffPolicy
    from operant.agents.optimizer import GradientStep as GradientStep
    from operant.agents.optimizer import Hooks as Hooks
    from operant.agents.optimizer import Losses as Losses
    from operant.agents.optimizer import Optimizer as Optimizer
    from operant.agents.ppo import PPO as PPO
    from operant.agents.ppo import PPOConfig as PPOConfig
    from operant.agents.registry import AGENTS as AGENTS
    from operant.agents.sac import SAC as SAC
    from operant.agents.sac import SACConfig as SACConfig
    from operant.agents.target import Target as Target
    from operant.agents.trpo import TRPO as TRPO
    from operant.agents.trpo import TRPOConfig as TRPOConfig
    from operant.agents.vtrace import ActorCriticVTrace as ActorCriticVTrace
    from operant.agents.vtrace import VTrace as VTrace
    from operant.agents.vtrace import VTraceConfig as VTraceConfig

__getattr__ = lazy_names(__name__)
