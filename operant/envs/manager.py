"""Makes the manager that a configuration asks for."""

from __future__ import annotations

import dataclasses
import os
from functools import partial
from typing import Any

import gymnasium

from operant.core.errors import UsageError
from operant.core.protocols import EnvironmentManager
from operant.envs import atari
from operant.envs.gym import ENVPOOL, EnvConfig, check_env_id, make_env, operations_of
from operant.envs.native import NativeEnvManager, Vector
from operant.envs.simple import SimpleEnvManager
from operant.envs.subproc import SubProcEnvManager


def make_manager(config: EnvConfig, seed: int, num_envs: int | None = None) -> EnvironmentManager:
    """The environments of a configuration as one; `num_envs` overrules its own."""
    check_env_id(config.id)
    config = dataclasses.replace(config, num_envs=num_envs or config.num_envs)
    refusal = _why_not_native(config)
    if config.manager == "native" and refusal:
        raise UsageError(f"manager = 'native': {refusal}; use manager = 'simple' or 'subproc'")
    if config.manager == "native" or (config.manager == "auto" and not refusal):
        skip = config.frame_skip if atari.is_atari(config.id) else 1
        make = partial(make_vector, config)
        return NativeEnvManager(make, seed, operations_of(config), skip, config.id)
    env_fns = [partial(make_env, config, index) for index in range(config.num_envs)]
    if config.manager == "subproc":
        workers = min(config.workers or os.cpu_count() or 1, config.num_envs)
        return SubProcEnvManager(
            env_fns, seed, workers, config.step_timeout, config.max_restarts
        )
    return SimpleEnvManager(env_fns, seed)


def make_vector(config: EnvConfig, seed: int) -> Vector:
    """The vector environment of a configuration."""
    preprocess = (config.atari_stack, config.frame_skip, config.sticky, config.time_limit)
    if atari.is_atari(config.id):
        return atari.make_vector(config.id, config.num_envs, preprocess, **config.kwargs)  # type: ignore[no-any-return]  # ale_py is not typed
    limit = {"max_episode_steps": config.time_limit} if config.time_limit else {}
    kwargs: dict[str, Any] = {**limit, **config.kwargs}
    if config.id.startswith(ENVPOOL):
        import envpool

        task = config.id.removeprefix(ENVPOOL)
        return envpool.make(  # type: ignore[no-any-return]  # envpool is not typed
            task, env_type="gymnasium", num_envs=config.num_envs, seed=seed, **kwargs
        )
    return gymnasium.make_vec(
        config.id, config.num_envs, vectorization_mode="vector_entry_point", **kwargs
    )


def _why_not_native(config: EnvConfig) -> str:
    """What keeps a configuration from the native manager; empty if nothing does."""
    if config.id.startswith(ENVPOOL):
        return ""
    spec = gymnasium.spec(config.id)
    if spec.vector_entry_point is None:
        return f"{config.id} has no vector form"
    if spec.additional_wrappers:
        return f"{config.id} is registered with wrappers, which a vector form cannot have"
    return ""
