"""What `auto` and 0 stand for in a run on this machine, and why: the one place that decides it."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from operant.agents.optimizer import compiled
from operant.agents.registry import agent_class
from operant.core import tree
from operant.core.errors import UsageError
from operant.core.objects import is_local
from operant.core.several import spaces_of
from operant.core.spaces import Spaces, is_mask
from operant.envs.env_settings import EnvConfig
from operant.envs.managers.choose import cores, native
from operant.envs.providers.gymnasium import make_env
from operant.networks.assemble import NetworkConfig
from operant.networks.by_path import OwnNetworkConfig
from operant.networks.precision import resolve_precision
from operant.ops.distribution import masks_of
from operant.ops.explore import uniform
from operant.session.machine import given_threads
from operant.session.run_settings import RunConfig, Sharing

PROBE_SECONDS = 0.25  # for measuring how long a step of the environment takes
SLOW_STEP = 100e-6  # seconds of a step above which a process that waits for it pays
MIN_STEP_SAVING = 0.4e-3  # seconds that workers must save in a step of all environments
MIN_BATCH_SAVING = 1e-3  # seconds that they must save in a batch, to be worth waking up
MAX_WAITING_PROCESSES = 64  # for environments that mostly wait, such as those behind a network
# Multiplications in a layer from which on several threads pay: 256x256 units for 256 rows, where a
# gradient step took 1.0 ms with two and 1.4 with one. A quarter of it, 128x128 units, lost 2 %, and
# half of it gained a tenth on idle cores, which a busy machine takes back.
MIN_THREADED_PRODUCTS = 16_000_000
# Compiling takes 10 to 30 s, and saves half a millisecond or more in each gradient step.
MIN_COMPILED_STEPS = 25_000
MAX_ERROR_LENGTH = 160  # characters of a compiler's message that are shown
EVALUATIONS = 10  # in a run, where their interval is not given

Changes = dict[str, Any]  # to the fields of a RunConfig


def resolve(config: RunConfig, spaces: Spaces) -> tuple[RunConfig, str]:
    """The configuration with every `auto` and 0 replaced, and the reasons, one a line."""
    reward_discount(config)  # refused before an environment's step is measured
    device = resolve_device(config.device)
    config = replace(config, agents=choose_sharing(config, spaces))
    changes, why_sampler = choose_sampler(config, device)
    config = replace(config, device=device, **changes)
    images = any(len(s.shape or ()) > 1 for k, s in spaces.observation.items() if not is_mask(k))
    network = config.network
    if isinstance(network, NetworkConfig):
        precision = resolve_precision(network.precision, images, device)
        network = replace(network, precision=precision)
    compile_, why_compiled = choose_compile(config, images, device)
    every = max(1, config.steps // EVALUATIONS) if config.eval.every == 0 else config.eval.every
    config = replace(
        config,
        threads=config.threads or given_threads() or choose_threads(config, images),
        network=network,
        compile=compile_,
        eval=replace(config.eval, every=every),
    )
    return config, "\n".join(filter(None, (why_sampler, why_compiled)))


def resolve_device(device: str) -> str:
    """The device that `auto` stands for, or the given one if PyTorch can use it."""
    chosen = device
    if device == "auto":
        chosen = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.zeros((), device=chosen)
    except (RuntimeError, AssertionError) as error:
        first = str(error).splitlines()[0]
        raise UsageError(f"device = {device!r}: {first}; expected cpu, cuda …") from error
    return chosen


def choose_sharing(config: RunConfig, spaces: Spaces) -> Sharing:
    """How several agents are learned: by an agent made for that, by one for each, or for all."""
    whole, asked = getattr(agent_class(config.algorithm), "for_several", False), config.agents
    if asked in ("shared", "separate") and (whole or not spaces.agents):
        one, all_ = f"{config.env.id} has one agent", f"{config.algorithm} learns for all of them"
        raise UsageError(f"agents = {asked!r}: {all_ if whole else one}; leave agents = 'auto'")
    if asked == "auto":
        each = [spaces_of(spaces, name) for name in spaces.agents]
        same = all(x == each[0] for x in each)
        asked = "joint" if whole or not each else "shared" if same else "separate"
    if config.agent_id and asked != "shared":
        raise UsageError(f"agent_id = True: is for a policy that is shared; agents = {asked!r}")
    return asked


def reward_discount(config: RunConfig) -> float | None:
    """The discount factor of the returns that rewards are normalised by; None: they are not."""
    if not config.env.normalize_reward:
        return None
    gamma = getattr(config.agent, "gamma", None)
    if not isinstance(gamma, int | float):
        raise UsageError(
            f"env.normalize_reward = True: divides rewards by the deviation of returns discounted "
            f"by agent.gamma, and {type(config.agent).__name__} has none; add a field `gamma`, or "
            f"set env.normalize_reward = False"
        )
    return float(gamma)


def choose_threads(config: RunConfig, images: bool) -> int:
    """One thread for small networks, which several would slow down; else all that are free."""
    sizes = config.network.hidden if isinstance(config.network, NetworkConfig) else ()
    widest = max((a * b for a, b in pairwise(sizes)), default=0)
    products = widest * config.agent.gradient_rows(config.env.num_envs)
    if not images and products < MIN_THREADED_PRODUCTS:
        return 1
    # The workers of an asynchronous sampler compute while the agent learns.
    busy = worker_count(config) if config.sampler == "async" else 0
    return max(1, cores() - busy)


def worker_count(config: RunConfig) -> int:
    """How many worker processes a parallel or asynchronous sampler has."""
    given = config.env.workers or (1 if config.sampler == "async" else cores())
    return min(given, config.env.num_envs)


def choose_sampler(config: RunConfig, device: str) -> tuple[Changes, str]:
    """The sampler that `auto` stands for, as changes to the configuration, and why."""
    env = config.env
    local = _known_here_only(config)
    if config.sampler != "auto":
        return {}, ""
    if local:
        return {"sampler": "serial"}, f"sampler serial: {local} is known to this process only"
    if env.manager != "auto":
        return {"sampler": "serial"}, ""
    if native(env):
        return {"sampler": "serial"}, f"sampler serial: {env.id} is vectorized natively"
    if env.num_envs == 1:
        return {"sampler": "serial"}, "sampler serial: there is one environment"
    return _choose_by_step_time(config, device, *measure_step(env))


def _known_here_only(config: RunConfig) -> str:
    """What was passed as an object that workers cannot import; an error if there are workers."""
    local = next(filter(is_local, (config.env.id, *config.env.wrappers)), "")
    samplers = ("parallel", "async", "alternating")
    chosen = f"sampler = {config.sampler!r}" if config.sampler in samplers else ""
    chosen = "env.manager = 'subproc'" if config.env.manager == "subproc" else chosen
    if local and chosen:
        raise UsageError(
            f"{chosen}: worker processes cannot import {local}, which was passed as an object; "
            f"define it at the top level of a module, or use sampler = 'serial'"
        )
    return local


def defined_here(config: RunConfig) -> bool:
    """Whether agent or network are the user's own, in a script that workers do not run."""
    own = [type(config.network).make] if isinstance(config.network, OwnNetworkConfig) else []
    made = (agent_class(config.algorithm), *own)
    local = [config.algorithm, getattr(config.network, "path", "")]
    return any(x.__module__ == "__main__" for x in made) or any(map(is_local, local))


def _choose_by_step_time(
    config: RunConfig, device: str, wall: float, cpu: float
) -> tuple[Changes, str]:
    """The choice for environments whose step takes `wall` seconds, `cpu` of them computing."""
    env, workers = config.env, worker_count(config)
    takes = f"a step takes {wall * 1e3:.3g} ms"
    if wall > SLOW_STEP and cpu < wall / 2:
        processes = min(env.workers or MAX_WAITING_PROCESSES, env.num_envs)
        changed = replace(env, manager="subproc", workers=processes)
        why = f"sampler serial over {processes} environment processes: {takes}, mostly waiting"
        return {"sampler": "serial", "env": changed}, why
    saved = wall * env.num_envs * (1 - 1 / workers)  # in one step of all environments
    if saved <= MIN_STEP_SAVING or saved * config.agent.length <= MIN_BATCH_SAVING:
        return {"sampler": "serial"}, f"sampler serial: {takes}, too short for workers to pay"
    if device != "cpu" or defined_here(config):  # workers would have to act without it
        why = f"sampler serial over {workers} environment processes: {takes} of computing"
        return {"sampler": "serial", "env": replace(env, manager="subproc")}, why
    return {"sampler": "parallel"}, f"sampler parallel, {workers} workers: {takes} of computing"


def measure_step(config: EnvConfig) -> tuple[float, float]:
    """Seconds and CPU seconds of a step of one environment under random actions."""
    env = make_env(config)
    generator = torch.Generator().manual_seed(0)
    taken: list[tuple[float, float]] = []
    try:
        observation, until = env.reset(seed=0), time.perf_counter() + PROBE_SECONDS
        while len(taken) < 2 or time.perf_counter() < until:
            rows = tree.map(lambda x: torch.from_numpy(np.asarray(x)[None]), observation)
            masks = masks_of(rows, tuple(env.spaces.action))
            drawn = uniform(env.spaces.action, 1, masks, generator, "cpu")
            action = {name: x[0].numpy() for name, x in drawn.items()}
            begin, cpu = time.perf_counter(), time.process_time()
            observation, _, terminated, truncated, _ = env.step(action)
            taken.append((time.perf_counter() - begin, time.process_time() - cpu))
            if terminated or truncated:
                observation = env.reset()
    finally:
        env.close()
    # Of the quicker steps: in others, this process may have waited for its turn on a busy machine.
    wall, cpu = np.quantile(taken, 0.2, axis=0)
    return float(wall), float(cpu)


def choose_compile(
    config: RunConfig, images: bool, device: str
) -> tuple[Literal["on", "off"], str]:
    """Whether gradient steps are compiled, and why, if that was `auto` and is worth saying."""
    if config.compile == "off":
        return "off", ""
    own = not isinstance(config.network, NetworkConfig)  # which torch may not be able to compile
    unrolled = isinstance(config.network, NetworkConfig) and config.network.lstm > 0
    recurrent = "a recurrent network is unrolled episode by episode" if unrolled else ""
    if config.compile == "on":
        failure = recurrent or compile_failure()
        if failure:
            raise UsageError(f"compile = 'on': {failure}; use compile = 'off'")
        return "on", ""
    count = config.agent.gradient_steps(config.steps, config.env.num_envs)
    # Convolutions gain nothing on a CPU, and other devices were not measured.
    if recurrent or own or images or device != "cpu" or count < MIN_COMPILED_STEPS:
        return "off", ""
    failure = compile_failure()
    if failure:
        return "off", f"learning not compiled: {failure}"
    return "on", f"learning compiled: half a minute once, for {count:,} gradient steps"


def compile_failure() -> str:
    """Why torch.compile does not work on this machine; empty if it does."""
    number = os.getpid()  # makes a program that no cache has, so that the compiler must run

    def gradient(x: Tensor) -> tuple[Tensor, ...]:
        return torch.autograd.grad((number * x).sin().sum(), x)

    try:
        compiled(gradient)(torch.ones(8, requires_grad=True))
    except Exception as error:  # whatever the C++ compiler that it calls fails with
        first = str(error).strip().split("\n", 1)[0][:MAX_ERROR_LENGTH]
        return f"torch.compile fails here ({type(error).__name__}: {first})"
    return ""
