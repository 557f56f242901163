"""What a run would be, before it is one."""

from __future__ import annotations

import math
import os
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np

from operant.config import dump_yaml
from operant.core.errors import EnvironmentFault, UsageError
from operant.core.protocols import Agent, EnvironmentManager
from operant.core.seeds import seed_for
from operant.core.spaces import Space, Spaces
from operant.envs.managers.choose import make_manager
from operant.envs.providers.gymnasium import EnvConfig
from operant.memory.replay import check_room
from operant.memory.replay_settings import Footprint, ReplayConfig, footprint
from operant.memory.storage import free_space
from operant.session.build import build_agent, resolve
from operant.session.run_settings import RunConfig, as_file

FLAGS = 4  # first, terminated, truncated, valid
COPIES = 4  # of each weight: itself, its gradient and Adam's two moments
ON_DISK = "replay, when full, on disk"
SETTINGS = tuple(field.name for field in fields(EnvConfig))


class Trial(NamedTuple):
    """A configuration that can work, with what `auto` and 0 stand for, and what it makes."""

    config: RunConfig
    spaces: Spaces
    agent: Agent
    why: str  # this sampler and whether to compile, where that was `auto`


def try_out(config: RunConfig) -> Trial:
    """Make one environment and the agent: what cannot work is refused before a run is made."""
    manager = _one_environment(config)
    try:
        manager.reset(seed_for(config.seed, "env"))
        changes, why = resolve(config, manager.spaces)
        config = replace(config, **changes)
        return Trial(config, manager.spaces, _agent(config, manager.spaces), why)
    finally:
        manager.close()


def _agent(config: RunConfig, spaces: Spaces) -> Agent:
    try:
        return build_agent(config, spaces)
    except UsageError as error:
        raise UsageError(f"{config.algorithm} on {config.env.id}: {error}") from None
    except (RuntimeError, MemoryError, OverflowError) as error:  # sizes that torch cannot make
        where = f"{config.algorithm} on {config.env.id}"
        raise UsageError(f"{where}: the network cannot be made: {error}; lower its sizes") from None


def _one_environment(config: RunConfig) -> EnvironmentManager:
    # One environment needs no process, and without one an error comes at once.
    here = config.env.manager == "subproc"
    env = replace(config.env, manager="simple") if here else config.env
    try:
        return make_manager(env, seed_for(config.seed, "env"), 1)
    except EnvironmentFault:
        raise
    except UsageError as error:
        known = str(error).startswith(tuple(f"{name} " for name in SETTINGS))
        raise UsageError(f"env.{error}" if known else str(error)) from None
    except Exception as error:  # whatever the environment's own constructor raises
        what = f"{type(error).__name__}: {error}"
        raise UsageError(f"env.id = {config.env.id!r}: cannot be made: {what}") from error


def preview(config: RunConfig) -> str:
    """The resolved configuration, the networks and the memory that they and the data need."""
    config, spaces, agent, why = trial = try_out(config)
    needed = memory_needed(trial)
    width = max(map(len, needed))
    table = "\n".join(f"  {name:{width}}  {human(size)}" for name, size in needed.items())
    seen = "\n".join(f"  {name}: {space}" for name, space in spaces.observation.items())
    done = "\n".join(f"  {name}: {space}" for name, space in spaces.action.items())
    chosen = f"\n{why}\n" if why else ""
    return (
        f"{dump_yaml(as_file(config))}{chosen}\nobservations\n{seen}\nactions\n{done}\n\n"
        f"network\n{agent.network}\n\nmemory\n{table}\n"
    )


def check_memory(trial: Trial) -> None:
    """Refuse what the machine has no room for, and a replay too small for its chunks."""
    config = trial.config
    replay = config.agent if isinstance(config.agent, ReplayConfig) else None
    try:
        if replay is not None:
            check_room(replay.replay_size, config.agent.length, config.env.num_envs)
        _check_disk(trial, replay)
    except UsageError as error:
        raise UsageError(f"agent.{error}") from None
    needed = memory_needed(trial)
    needed.pop(ON_DISK, None)
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    total = needed.pop("total")
    if total > there:
        most = max(needed, key=lambda name: needed[name])
        disk = (
            "" if replay is None else "agent.replay_size, or name a disk in agent.replay_dir; or "
        )
        raise UsageError(
            f"the run needs {human(total)} of memory, {human(needed[most])} of it for the {most}, "
            f"and this machine has {human(there)}; lower {disk}env.num_envs, agent.length or the "
            f"size of the network"
        )


def _check_disk(trial: Trial, replay: ReplayConfig | None) -> None:
    if replay is None or not replay.replay_dir:
        return
    size, free = replay_needed(trial).rows, free_space(replay.replay_dir)
    if size > free:
        raise UsageError(
            f"replay_dir = {replay.replay_dir!r}: the replay needs {human(size)} when full, and "
            f"there are {human(free)} free; lower agent.replay_size or name another directory"
        )


def memory_needed(trial: Trial) -> dict[str, int]:
    """Bytes by purpose: weights with what training keeps beside them, the chunk, the replay.

    A replay on disk is not in the total.
    """
    config, spaces, agent, *_ = trial
    weights = {id(p): p.nbytes for p in agent.network.parameters()}
    sizes = {"acting network, with its gradients and moments": COPIES * sum(weights.values())}
    seen = sum(map(_nbytes, spaces.observation.values()))
    row = seen + sum(map(_nbytes, spaces.action.values())) + 4 + FLAGS
    row += sum(x.nbytes for x in agent.initial_state(1).values())
    sizes["chunk"] = (config.agent.length + 1) * config.env.num_envs * (row + seen)
    on_disk = {}
    if isinstance(config.agent, ReplayConfig):
        rows, priorities = replay_needed(trial)
        sizes |= {"priorities": priorities} if priorities else {}
        if config.agent.replay_dir:
            on_disk[ON_DISK] = rows
        else:
            sizes["replay, when full"] = rows
    return sizes | {"total": sum(sizes.values())} | on_disk


def replay_needed(trial: Trial) -> Footprint:
    """Bytes of the replay of a run, when it is full."""
    config, spaces, agent, *_ = trial
    assert isinstance(config.agent, ReplayConfig)
    state, envs = agent.initial_state(1), config.env.num_envs
    return footprint(config.agent, spaces, state, envs, config.agent.length)


def _nbytes(space: Space) -> int:
    dtype: Any = space.dtype or np.int64
    return math.prod(space.shape or ()) * int(np.dtype(dtype).itemsize)


def human(size: float) -> str:
    """Bytes in words."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
