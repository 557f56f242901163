"""Makes the manager that a configuration asks for."""

from __future__ import annotations

import dataclasses
import inspect
import os
from functools import partial
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec, load_env_creator

from operant.core.errors import UsageError
from operant.core.protocols import EnvironmentManager
from operant.envs.managers.native import NativeEnvManager, Vector
from operant.envs.managers.simple import SimpleEnvManager
from operant.envs.managers.slots import EnvFn
from operant.envs.managers.subproc import SubProcEnvManager
from operant.envs.providers import atari
from operant.envs.providers.gymnasium import (
    ENVPOOL,
    EnvConfig,
    check_env_id,
    made,
    make_env,
    operations_of,
    provider,
    spec_of,
)


def make_manager(config: EnvConfig, seed: int, num_envs: int | None = None) -> EnvironmentManager:
    """The environments of a configuration as one; `num_envs` overrules its own."""
    config = dataclasses.replace(config, num_envs=num_envs or config.num_envs)
    if native(config):
        return _native(config, seed)
    if config.manager == "subproc":
        return make_subproc(config, seed, (0, config.num_envs), config.workers)
    return SimpleEnvManager(env_fns(config), seed)


def make_part(config: EnvConfig, seed: int, start: int, stop: int) -> EnvironmentManager:
    """Environments `start` to `stop` of a configuration, stepped by whoever calls this."""
    if native(config):
        return _native(dataclasses.replace(config, num_envs=stop - start), seed + start)
    return SimpleEnvManager(env_fns(config)[start:stop], seed, start)


def make_subproc(
    config: EnvConfig, seed: int, bound: tuple[int, int], workers: int
) -> SubProcEnvManager:
    """Environments of a configuration in processes, by default as many as there are cores."""
    start, stop = bound
    fns = env_fns(config)[start:stop]
    workers = min(workers or cores(), len(fns))
    limits = (config.step_timeout, config.max_restarts)
    return SubProcEnvManager(fns, seed, workers, *limits, first=start)


def env_fns(config: EnvConfig) -> list[EnvFn]:
    """What makes each environment of a configuration."""
    return [partial(make_env, config, index) for index in range(config.num_envs)]


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def native(config: EnvConfig) -> bool:
    """Whether a configuration means a batch that steps as one; refused where there is none."""
    check_env_id(config.id)
    refusal = _why_not_native(config)
    if config.manager == "native" and refusal:
        raise UsageError(f"manager = 'native': {refusal}; use manager = 'simple' or 'subproc'")
    return config.manager == "native" or (config.manager == "auto" and not refusal)


def _native(config: EnvConfig, seed: int) -> NativeEnvManager:
    skip = config.frame_skip if atari.is_atari(config.id) else 1
    make = partial(make_vector, config)
    return NativeEnvManager(make, seed, operations_of(config), skip, config.id)


def make_vector(config: EnvConfig, seed: int) -> Vector:
    """The vector environment of a configuration."""
    count, make = config.num_envs, partial(gymnasium.make_vec, config.id)
    settings: dict[str, Any] = {"vectorization_mode": "vector_entry_point"}
    if config.time_limit:
        settings["max_episode_steps"] = config.time_limit
    if atari.is_atari(config.id):
        preprocess = (config.atari_stack, config.frame_skip, config.sticky, config.time_limit)
        make, settings = partial(atari.make_vector, config.id), {"preprocess": preprocess}
    elif config.id.startswith(ENVPOOL):
        task = config.id.removeprefix(ENVPOOL)
        make = partial(provider("envpool", config.id).make, task)
        settings.update(env_type="gymnasium", seed=seed)
        del settings["vectorization_mode"]
    made_of = partial(make, num_envs=count, **settings | config.kwargs)
    return made(config.id, made_of)


def _why_not_native(config: EnvConfig) -> str:
    """What keeps a configuration from the native manager; empty if nothing does."""
    if config.id.startswith(ENVPOOL):
        return ""
    spec = spec_of(config.id)
    if spec is None or spec.vector_entry_point is None:
        return f"{config.id} has no vector form"
    if spec.additional_wrappers:
        return f"{config.id} is registered with wrappers, which a vector form cannot have"
    wanted = set(config.kwargs)
    if config.time_limit and not atari.is_atari(config.id):
        wanted.add("max_episode_steps")
    beyond = sorted(wanted - _taken(spec))
    return f"the vector form of {config.id} takes no {', '.join(beyond)}" if beyond else ""


def _taken(spec: EnvSpec) -> set[str]:
    """The arguments that the vector form of an environment takes."""
    entry = spec.vector_entry_point
    make = load_env_creator(entry) if isinstance(entry, str) else entry
    assert make is not None, "there is no vector form"
    return set(inspect.signature(make).parameters)
