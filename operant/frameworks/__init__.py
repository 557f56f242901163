"""The agents under the names and calls of the systems that Operant descends from.

`DQN`, `PPO` and the other classes here are the agents over your own modules, in your own loop, as
Machin has them; `rlpyt` has the learning half of an agent as rlpyt calls it. Nothing here computes
a loss.
"""

from typing import TYPE_CHECKING

from operant.core.lazy import lazy_names

if TYPE_CHECKING:
    from operant.frameworks.actor_critic import A2C as A2C
    from operant.frameworks.actor_critic import PPO as PPO
    from operant.frameworks.buffer import Buffer as Buffer
    from operant.frameworks.buffer import PrioritizedBuffer as PrioritizedBuffer
    from operant.frameworks.deterministic_policy import DDPG as DDPG
    from operant.frameworks.deterministic_policy import HDDPG as HDDPG
    from operant.frameworks.deterministic_policy import TD3 as TD3
    from operant.frameworks.deterministic_policy import DDPGPer as DDPGPer
    from operant.frameworks.episode import Transition as Transition
    from operant.frameworks.importance_weighted import IMPALA as IMPALA
    from operant.frameworks.rates import AbsoluteLR as AbsoluteLR
    from operant.frameworks.rates import gen_learning_rate_func as gen_learning_rate_func
    from operant.frameworks.rlpyt import AgentInputs as AgentInputs
    from operant.frameworks.rlpyt import AgentTrain as AgentTrain
    from operant.frameworks.rlpyt import BatchSpec as BatchSpec
    from operant.frameworks.rlpyt import OptInfo as OptInfo
    from operant.frameworks.rlpyt import PolicyGradientAlgo as PolicyGradientAlgo
    from operant.frameworks.rlpyt import RLAlgorithm as RLAlgorithm
    from operant.frameworks.rlpyt import RlAlgorithm as RlAlgorithm
    from operant.frameworks.several_policies import MADDPG as MADDPG
    from operant.frameworks.several_processes import A3C as A3C
    from operant.frameworks.several_processes import DDPGApex as DDPGApex
    from operant.frameworks.several_processes import DQNApex as DQNApex
    from operant.frameworks.soft_actor_critic import SAC as SAC
    from operant.frameworks.trust_region_policy import TRPO as TRPO
    from operant.frameworks.trust_region_policy import ActorContinuous as ActorContinuous
    from operant.frameworks.trust_region_policy import ActorDiscrete as ActorDiscrete
    from operant.frameworks.value_based import DQN as DQN
    from operant.frameworks.value_based import RAINBOW as RAINBOW
    from operant.frameworks.value_based import DQNPer as DQNPer

__getattr__ = lazy_names(__name__)
