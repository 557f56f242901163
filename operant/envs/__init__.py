"""Environments: single ones, many as one, and what converts and checks their steps.

`providers` make an `Environment` from Gymnasium and the packages around it, `preprocessing` turns
its observations and actions into what agents see and choose, `managers` run B environments as one:
`SimpleEnvManager` in this process, `SubProcEnvManager` in worker processes, `NativeEnvManager` as a
vector environment. `make_manager` chooses the manager for a configuration.
"""

from typing import TYPE_CHECKING

from operant.core.lazy import lazy_names

if TYPE_CHECKING:
    from operant.envs.env_settings import EnvConfig as EnvConfig
    from operant.envs.environment import Environment as Environment
    from operant.envs.managers.choose import make_manager as make_manager
    from operant.envs.managers.native import NativeEnvManager as NativeEnvManager
    from operant.envs.managers.simple import SimpleEnvManager as SimpleEnvManager
    from operant.envs.managers.subproc import SubProcEnvManager as SubProcEnvManager
    from operant.envs.preprocessing.action import ActionPreprocessor as ActionPreprocessor
    from operant.envs.preprocessing.observation import ObsPreprocessor as ObsPreprocessor
    from operant.envs.providers.gymnasium import Env as Env
    from operant.envs.providers.gymnasium import GymEnv as GymEnv
    from operant.envs.providers.gymnasium import make_env as make_env

__getattr__ = lazy_names(__name__)
