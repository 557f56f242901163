"""Chooses and makes the manager that a configuration asks for."""

from __future__ import annotations

import dataclasses
import inspect
import os
from functools import partial

from gymnasium.envs.registration import EnvSpec, load_env_creator

from operant.core.errors import UsageError
from operant.core.protocols import EnvironmentManager
from operant.envs.env_settings import EnvConfig
from operant.envs.managers.native import NativeEnvManager
from operant.envs.managers.simple import SimpleEnvManager
from operant.envs.managers.step_buffers import EnvFn
from operant.envs.managers.subproc import SubProcEnvManager
from operant.envs.providers import atari, envpool, own
from operant.envs.providers.catalog import check_env_id, spec_of
from operant.envs.providers.gymnasium import (
    frames_per_step,
    make_env,
    make_vector,
    operations_of,
    plays_atari,
)


def make_manager(config: EnvConfig, seed: int, num_envs: int | None = None) -> EnvironmentManager:
    """The environments of a configuration as one; `num_envs` overrides its own."""
    config = dataclasses.replace(config, num_envs=num_envs or config.num_envs)
    if native(config):
        return _native(config, seed)
    if config.manager == "subproc":
        return make_subproc(config, seed, (0, config.num_envs), config.workers)
    return SimpleEnvManager(env_fns(config), seed)


def make_part(config: EnvConfig, seed: int, start: int, stop: int) -> EnvironmentManager:
    """Environments `start` to `stop` of a configuration, in this process."""
    if native(config):
        return _native(dataclasses.replace(config, num_envs=stop - start), seed + start)
    return SimpleEnvManager(env_fns(config)[start:stop], seed, start)


def make_subproc(
    config: EnvConfig, seed: int, bound: tuple[int, int], workers: int
) -> SubProcEnvManager:
    """Environments of a configuration in worker processes, by default one per CPU core."""
    start, stop = bound
    fns = env_fns(config)[start:stop]
    workers = min(workers or cores(), len(fns))
    limits = (config.step_timeout, config.max_restarts)
    return SubProcEnvManager(fns, seed, workers, *limits, first=start)


def env_fns(config: EnvConfig) -> list[EnvFn]:
    """Functions that make each environment of a configuration."""
    return [partial(make_env, config, index) for index in range(config.num_envs)]


def cores() -> int:
    """CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def native(config: EnvConfig) -> bool:
    """Whether a configuration means a vector environment; an error where there is none."""
    check_env_id(config.id)
    if envpool.is_envpool(config.id):
        _check_envpool(config)
    if own.is_vector(config):
        return _check_own_vector(config)
    obstacle = _why_not_native(config)
    if config.manager == "native" and obstacle:
        raise UsageError(f"manager = 'native': {obstacle}; use manager = 'simple' or 'subproc'")
    return config.manager == "native" or (config.manager == "auto" and not obstacle)


def _check_envpool(config: EnvConfig) -> None:
    """Raise an error for settings that EnvPool's vector environments cannot have."""
    stack = config.frame_stack > 1 and not plays_atari(config)
    if config.wrappers or stack:
        asked = "wrappers" if config.wrappers else "frame_stack"
        raise UsageError(
            f"{asked} = {getattr(config, asked)!r}: EnvPool has only vector environments, which "
            f"cannot have it; leave it out, or use the id {envpool.task_of(config.id)!r}"
        )


def _check_own_vector(config: EnvConfig) -> bool:
    """True; an error for settings that only single environments can have."""
    asked = [name for name in ("wrappers", "frame_stack", "time_limit") if getattr(config, name)]
    if asked:
        raise UsageError(
            f"{asked[0]} = {getattr(config, asked[0])!r}: {config.id} makes a VectorEnv, and this "
            f"is for single environments; leave it out, or pass what makes one environment"
        )
    return True


def _native(config: EnvConfig, seed: int) -> NativeEnvManager:
    make, frames = partial(make_vector, config), frames_per_step(config)
    about = (operations_of(config), frames, config.id, config.episodic_life)
    return NativeEnvManager(make, seed, *about)


def _why_not_native(config: EnvConfig) -> str:
    """What keeps a configuration from the native manager; empty if nothing does."""
    if envpool.is_envpool(config.id):
        return ""
    if config.wrappers:
        return f"wrappers = {config.wrappers!r} are for single environments"
    if config.frame_stack > 1 and not atari.is_atari(config.id):
        return f"frame_stack = {config.frame_stack} is for single environments"
    spec = spec_of(config.id)
    if spec is None or spec.vector_entry_point is None:
        return f"{config.id} has no vector form"
    if spec.additional_wrappers:
        return f"{config.id} is registered with wrappers, which a vector form cannot have"
    wanted = set(config.kwargs)
    if config.time_limit and not atari.is_atari(config.id):
        wanted.add("max_episode_steps")
    unknown = sorted(wanted - _parameters(spec))
    return f"the vector form of {config.id} takes no {', '.join(unknown)}" if unknown else ""


def _parameters(spec: EnvSpec) -> set[str]:
    """The arguments that the vector form of an environment takes."""
    entry = spec.vector_entry_point
    make = load_env_creator(entry) if isinstance(entry, str) else entry
    assert make is not None, "there is no vector form"
    return set(inspect.signature(make).parameters)
