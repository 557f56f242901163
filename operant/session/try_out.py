"""Tries a configuration before a run directory is made: one environment, the agent, the memory."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from operant.config import dump_yaml
from operant.core.errors import UsageError
from operant.core.experience import Tensors
from operant.core.protocols import Agent, EnvironmentManager
from operant.core.seeds import seed_for
from operant.core.spaces import Space, Spaces
from operant.envs.env_checks import check_quickly
from operant.envs.interface import Interface
from operant.envs.managers.simple import SimpleEnvManager
from operant.memory.replay import check_room
from operant.memory.replay_settings import Footprint, UniformReplayConfig, footprint
from operant.memory.storage import free_space
from operant.networks.assemble import NetworkConfig, min_weights
from operant.session.build import Trial, build_agent
from operant.session.env_errors import named_manager
from operant.session.machine import prepare
from operant.session.resolve import resolve, resolve_device
from operant.session.run_settings import RunConfig, as_file
from operant.session.saved_spaces import interface_of
from operant.session.simulator import simulator_of
from operant.session.time_limit import limit_evaluation
from operant.session.vector_env import fit_vector

FLAGS_PER_STEP = 4  # booleans of the record: first, terminated, truncated, valid
COPIES_OF_WEIGHTS = 4  # weights, gradients and Adam's two moments
BYTES_OF_WEIGHT = 4
BATCH = "batch of a gradient step"
ON_DISK = "replay buffer, when full, on disk"


def try_out(config: RunConfig) -> Trial:
    """Make one environment and the run's agent, so that what cannot work is refused at once."""
    manager = one_environment(config)
    try:
        manager.reset(seed_for(config.seed, "env"))
        spaces = manager.spaces
        faults: list[str] = []
        if isinstance(manager, SimpleEnvManager):  # a vector form is no user's first try
            faults = check_quickly(simulator_of(manager), config.env.id)
        config, unlimited = limit_evaluation(config, manager)
        config, vector = fit_vector(config)
        config, why = resolve(config, spaces)
        why = "\n".join(filter(None, (why, unlimited, vector, *faults)))
        prepare(config.threads)  # first, as initial weights may depend on the number of threads
        return Trial(config, spaces, _agent(config, spaces), why, interface_of(manager))
    finally:
        manager.close()


def agent_for(config: RunConfig, spaces: Spaces) -> tuple[RunConfig, Agent]:
    """The agent of a run that was tried out before, made without an environment."""
    config = replace(config, device=resolve_device(config.device))
    prepare(config.threads)
    return config, _agent(config, spaces)


def _agent(config: RunConfig, spaces: Spaces) -> Agent:
    where = f"{config.algorithm} on {config.env.id}"
    try:
        _check_sizes(config)
        return build_agent(config, spaces)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
    except (RuntimeError, MemoryError, OverflowError) as error:  # sizes that torch cannot make
        raise UsageError(f"{where}: the network cannot be made: {error}; lower its sizes") from None


def _check_sizes(config: RunConfig) -> None:
    """Refuse a network that this machine has no memory for; the system would kill the process."""
    if not isinstance(config.network, NetworkConfig):
        return
    needed = BYTES_OF_WEIGHT * COPIES_OF_WEIGHTS * min_weights(config.network)
    if needed > installed():
        raise MemoryError(f"its weights need {human(needed)}, and here are {human(installed())}")


def one_environment(config: RunConfig) -> EnvironmentManager:
    """A manager of one environment of a run; one that cannot be made is wrong usage."""
    # In this process: a single environment gains nothing from another one.
    here = config.env.manager == "subproc"
    env = replace(config.env, manager="simple") if here else config.env
    return named_manager(env, seed_for(config.seed, "env"), 1)


def interface_for(config: RunConfig) -> Interface:
    """The interface of a run's environment, of which one is made."""
    manager = one_environment(config)
    try:
        return interface_of(manager)
    finally:
        manager.close()


def preview(config: RunConfig) -> str:
    """What `--dry-run` prints: the resolved configuration, the network and the memory needed."""
    config, spaces, agent, why, _ = trial = try_out(config)
    needed = memory_needed(trial)
    width = max(map(len, needed))
    table = "\n".join(f"  {name:{width}}  {human(size)}" for name, size in needed.items())
    observations = "\n".join(f"  {name}: {space}" for name, space in spaces.observation.items())
    actions = "\n".join(f"  {name}: {space}" for name, space in spaces.action.items())
    chosen = f"\n{why}\n" if why else ""
    return (
        f"{dump_yaml(as_file(config))}{chosen}\nobservations\n{observations}\nactions\n{actions}\n"
        f"\nnetwork\n{agent.network}\n\nmemory\n{table}\n"
    )


def check_memory(trial: Trial) -> None:
    """Refuse a run that this machine has no memory for, or whose replay buffer is too small."""
    config = trial.config
    replay = config.agent if isinstance(config.agent, UniformReplayConfig) else None
    try:
        if replay is not None:
            check_room(replay.replay_size, config.agent.length, config.env.num_envs)
        _check_disk(trial, replay)
    except UsageError as error:
        raise UsageError(f"agent.{error}") from None
    needed = memory_needed(trial)
    needed.pop(ON_DISK, None)
    total = needed.pop("total")
    if total > installed():
        largest = max(needed, key=lambda name: needed[name])
        remedy = (
            "" if replay is None else "agent.replay_size, or name a disk in agent.replay_dir; or "
        )
        batch = "agent.batch_size, " if largest == BATCH else ""
        raise UsageError(
            f"the run needs {human(total)} of memory, {human(needed[largest])} of it for the "
            f"{largest}, and this machine has {human(installed())}; lower {batch}{remedy}"
            f"env.num_envs, agent.length or the size of the network"
        )


def installed() -> int:
    """Bytes of memory that this machine has."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _check_disk(trial: Trial, replay: UniformReplayConfig | None) -> None:
    if replay is None or not replay.replay_dir:
        return
    size, free = replay_needed(trial).rows, free_space(replay.replay_dir)
    if size > free:
        raise UsageError(
            f"replay_dir = {replay.replay_dir!r}: the replay buffer needs {human(size)} when full, "
            f"and {human(free)} are free; lower agent.replay_size or name another directory"
        )


def memory_needed(trial: Trial) -> dict[str, int]:
    """Bytes by purpose: weights and what the optimizer keeps, the rollout, the replay buffer.

    A replay buffer on disk is not in the total.
    """
    config, spaces, agent, *_ = trial
    weights = {id(p): p.nbytes for p in agent.network.parameters()}
    sizes = {
        "acting network, gradients and optimizer": COPIES_OF_WEIGHTS * sum(weights.values()),
    }
    observation = sum(map(_nbytes, spaces.observation.values()))
    row = observation + sum(map(_nbytes, spaces.action.values())) + 4 + FLAGS_PER_STEP
    row += sum(x.nbytes for x in agent.initial_state(1).values())
    sizes["rollout"] = (config.agent.length + 1) * config.env.num_envs * (row + observation)
    on_disk = {}
    if isinstance(config.agent, UniformReplayConfig):
        rows, priorities = replay_needed(trial)
        sizes[BATCH] = config.agent.batch_size * (row + observation)
        sizes |= {"priorities": priorities} if priorities else {}
        if config.agent.replay_dir:
            on_disk[ON_DISK] = rows
        else:
            sizes["replay buffer, when full"] = rows
    return sizes | {"total": sum(sizes.values())} | on_disk


def replay_needed(trial: Trial) -> Footprint:
    """Bytes of the replay buffer of a run, when it is full."""
    config, spaces, agent, *_ = trial
    assert isinstance(config.agent, UniformReplayConfig)
    state, envs = agent.initial_state(1), config.env.num_envs
    _, memo = agent.act(_zeros(spaces), state, explore=False)  # draws and counts nothing
    return footprint(config.agent, spaces, state, envs, config.agent.length, memo.tensors)


def _zeros(spaces: Spaces) -> Tensors:
    """One row of observations."""
    return {
        name: torch.from_numpy(np.zeros((1, *(space.shape or ())), space.dtype or np.int64))
        for name, space in spaces.observation.items()
    }


def _nbytes(space: Space) -> int:
    dtype: Any = space.dtype or np.int64
    return math.prod(space.shape or ()) * int(np.dtype(dtype).itemsize)


def human(size: float) -> str:
    """A number of bytes with its unit."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
