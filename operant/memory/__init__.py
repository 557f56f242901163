"""Where experience is kept: rollouts that are learned from once, and replay buffers.

`RolloutCache` holds one chunk; `ExperienceReplay` the last steps, of which windows are sampled,
uniformly or by priority, each frame of stacked images stored once, in memory or on disk.
"""

from typing import TYPE_CHECKING

from operant.core.lazy import lazy_names

if TYPE_CHECKING:
    from operant.memory.prioritized import PrioritizedReplay as PrioritizedReplay
    from operant.memory.replay import ExperienceReplay as ExperienceReplay
    from operant.memory.replay_settings import ReplayConfig as ReplayConfig
    from operant.memory.replay_settings import UniformReplayConfig as UniformReplayConfig
    from operant.memory.replay_settings import make_replay as make_replay
    from operant.memory.rollout import ExperienceCache as ExperienceCache
    from operant.memory.rollout import RolloutBuffer as RolloutBuffer
    from operant.memory.rollout import RolloutCache as RolloutCache

__getattr__ = lazy_names(__name__)
