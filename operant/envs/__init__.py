"""Environments: single ones, many as one, and what converts and checks their steps.

`providers` make an `Environment` from Gymnasium and the packages around it, `preprocessing` turns
its observations and actions into what agents see and choose, `managers` run B environments as one:
`SimpleEnvManager` in this process, `SubProcEnvManager` in worker processes, `NativeEnvManager` as a
vector environment. `make_manager` chooses the manager for a configuration.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from operant.envs.env_settings import EnvConfig
    from operant.envs.environment import Environment
    from operant.envs.managers.choose import make_manager
    from operant.envs.managers.native import NativeEnvManager
    from operant.envs.managers.simple import SimpleEnvManager
    from operant.envs.managers.subproc import SubProcEnvManager
    from operant.envs.preprocessing.action import ActionPreprocessor
    from operant.envs.preprocessing.observation import ObsPreprocessor
    from operant.envs.providers.gymnasium import Env, GymEnv, make_env

_MODULES = {
    "ActionPreprocessor": "preprocessing.action",
    "Env": "providers.gymnasium",
    "EnvConfig": "env_settings",
    "Environment": "environment",
    "GymEnv": "providers.gymnasium",
    "NativeEnvManager": "managers.native",
    "ObsPreprocessor": "preprocessing.observation",
    "SimpleEnvManager": "managers.simple",
    "SubProcEnvManager": "managers.subproc",
    "make_env": "providers.gymnasium",
    "make_manager": "managers.choose",
}
__all__ = [
    "ActionPreprocessor",
    "Env",
    "EnvConfig",
    "Environment",
    "GymEnv",
    "NativeEnvManager",
    "ObsPreprocessor",
    "SimpleEnvManager",
    "SubProcEnvManager",
    "make_env",
    "make_manager",
]


def __getattr__(name: str) -> Any:
    # On demand: managers import torch, which environment workers do without.
    if name in _MODULES:
        return getattr(import_module(f"operant.envs.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'operant.envs' has no attribute {name!r}")
