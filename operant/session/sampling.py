"""Which sampler a run uses, and what it is made of."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from operant.core import tree
from operant.core.errors import UsageError
from operant.core.protocols import Agent, EnvironmentManager, Sampler
from operant.core.spaces import Spaces
from operant.envs.managers.choose import cores, make_manager, make_part, make_subproc, native
from operant.envs.providers.gymnasium import EnvConfig, make_env
from operant.ops.distribution import masks_of
from operant.ops.explore import uniform
from operant.samplers.alternating import AlternatingSampler
from operant.samplers.asynchronous import AsyncSampler
from operant.samplers.collector import Collecting
from operant.samplers.evaluate import Evaluation
from operant.samplers.parallel import ParallelSampler, Share
from operant.samplers.serial import SerialSampler
from operant.session.run_settings import RunConfig

MakeAgent = Callable[[Spaces], Agent]
LOOK = 0.25  # seconds that an environment is watched for
DEAR = 100e-6  # seconds a step must take before waiting for it is worth a process
SHORTER = 0.4e-3  # seconds by which a step of all environments must shrink to be worth workers
START = 1e-3  # seconds that a batch must save to be worth waking them for
CROWD = 64  # processes that may wait side by side


def make_sampler(
    config: RunConfig, make_agent: MakeAgent, seed: int, evaluation: Evaluation
) -> tuple[Agent, Sampler]:
    """The agent of a run and what collects its experience."""
    length = config.agent.length
    plan = Collecting(
        length, seed, config.env.reward_clip, config.decorrelate, config.mid_batch_reset
    )
    if config.sampler in ("parallel", "async"):
        agent = make_agent(_spaces(config.env, seed))
        kind = ParallelSampler if config.sampler == "parallel" else AsyncSampler
        limits = config.env.step_timeout, config.env.max_restarts
        return agent, kind(_shares(config, seed), agent, plan, evaluation, *limits)
    managers = _managers(config, seed)
    try:
        agent = make_agent(managers[0].spaces)
        if config.sampler == "alternating":
            return agent, AlternatingSampler(managers, agent, plan, evaluation)
        rest = (plan.reward_clip, evaluation, plan.decorrelate, plan.mid_batch_reset)
        return agent, SerialSampler(managers[0], agent, length, seed, *rest)
    except BaseException:
        for manager in managers:
            manager.close()
        raise


def worker_count(config: RunConfig) -> int:
    """Processes that collect."""
    given = config.env.workers or (1 if config.sampler == "async" else cores())
    return min(given, config.env.num_envs)


def _managers(config: RunConfig, seed: int) -> list[EnvironmentManager]:
    env = config.env
    if config.sampler != "alternating":
        return [make_manager(env, seed)]
    if env.num_envs % 2:
        raise UsageError(
            f"env.num_envs = {env.num_envs}: the alternating sampler steps one half of the "
            f"environments while it acts for the other; expected an even number"
        )
    half = env.num_envs // 2
    bounds = [(0, half), (half, env.num_envs)]
    if env.manager in ("auto", "subproc"):
        workers = max(1, (env.workers or cores()) // 2)
        return [make_subproc(env, seed, bound, workers) for bound in bounds]
    return [make_part(env, seed, *bound) for bound in bounds]


def _shares(config: RunConfig, seed: int) -> list[Share]:
    env = _stepped(config)
    ends = np.linspace(0, env.num_envs, worker_count(config) + 1).astype(int).tolist()
    return [
        (stop - start, partial(make_part, env, seed, start, stop)) for start, stop in pairwise(ends)
    ]


def _stepped(config: RunConfig) -> EnvConfig:
    """The environments as workers step them."""
    if config.env.manager == "subproc":
        raise UsageError(
            f"env.manager = 'subproc': the workers of sampler = {config.sampler!r} step their "
            f"environments themselves; use env.manager = 'auto' or 'simple', or sampler = 'serial'"
        )
    # Parts of a native batch are other environments than the whole; alone a worker has them all.
    parts = config.env.manager == "auto" and worker_count(config) > 1
    return replace(config.env, manager="simple") if parts else config.env


def _spaces(env: EnvConfig, seed: int) -> Spaces:
    here = "simple" if env.manager == "subproc" else env.manager
    manager = make_manager(replace(env, manager=here), seed, 1)
    try:
        return manager.spaces
    finally:
        manager.close()


def choose(config: RunConfig, device: str) -> tuple[dict[str, Any], str]:
    """What `auto` stands for, as changes to the configuration, and why in one line."""
    env = config.env
    if config.sampler != "auto":
        return {}, ""
    if env.manager != "auto":
        return {"sampler": "serial"}, ""
    if native(env):
        return {"sampler": "serial"}, f"sampler serial: {env.id} comes as a native batch"
    if env.num_envs == 1:
        return {"sampler": "serial"}, "sampler serial: there is one environment"
    return _by_pace(config, device, *pace(env))


def _by_pace(
    config: RunConfig, device: str, wall: float, busy: float
) -> tuple[dict[str, Any], str]:
    """The choice for environments that take so many seconds a step, so many of them computing."""
    env, workers = config.env, worker_count(config)
    takes = f"a step takes {wall * 1e3:.3g} ms"
    if wall > DEAR and busy < wall / 2:
        crowd = min(env.workers or CROWD, env.num_envs)
        changed = replace(env, manager="subproc", workers=crowd)
        why = f"sampler serial over {crowd} environment processes: {takes}, mostly of waiting"
        return {"sampler": "serial", "env": changed}, why
    length = config.agent.length
    saved = wall * env.num_envs * (1 - 1 / workers)  # in one step of all
    if saved <= SHORTER or saved * length <= START:
        return {"sampler": "serial"}, f"sampler serial: {takes}, too little for workers to pay"
    if device != "cpu":  # whose acting workers would have to do without
        why = f"sampler serial over {workers} environment processes: {takes} of computing"
        return {"sampler": "serial", "env": replace(env, manager="subproc")}, why
    return {"sampler": "parallel"}, f"sampler parallel, {workers} workers: {takes} of computing"


def pace(config: EnvConfig) -> tuple[float, float]:
    """Seconds that a step of one environment takes under random actions, and CPU time of it."""
    env = make_env(config)
    generator = torch.Generator().manual_seed(0)
    taken: list[tuple[float, float]] = []
    try:
        seen, until = env.reset(seed=0), time.perf_counter() + LOOK
        while len(taken) < 2 or time.perf_counter() < until:
            rows = tree.map(lambda x: torch.from_numpy(np.asarray(x)[None]), seen)
            masks = masks_of(rows, tuple(env.spaces.action))
            drawn = uniform(env.spaces.action, 1, masks, generator, "cpu")
            action = {name: x[0].numpy() for name, x in drawn.items()}
            begin, busy = time.perf_counter(), time.process_time()
            seen, _, terminated, truncated, _ = env.step(action)
            taken.append((time.perf_counter() - begin, time.process_time() - busy))
            if terminated or truncated:
                seen = env.reset()
    finally:
        env.close()
    # Of the quicker steps: in others, this process may have waited for its turn on a busy machine.
    wall, busy = np.quantile(taken, 0.2, axis=0)
    return float(wall), float(busy)
