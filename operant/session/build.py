"""A configuration becomes parts: the one place where they all meet."""

from __future__ import annotations

import os
import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from operant.agents import AGENTS
from operant.containers.local import LocalWorker
from operant.core.errors import UsageError
from operant.core.protocols import Agent
from operant.core.spaces import Spaces, is_mask
from operant.envs.manager import make_manager
from operant.networks.build import build_network
from operant.samplers.evaluate import Evaluation
from operant.samplers.explorer import Explorer
from operant.samplers.serial import SerialSampler
from operant.session.run_config import RunConfig


def build(config: RunConfig) -> LocalWorker:
    """The container of a run, ready to train."""
    torch.set_num_threads(config.threads)
    manager = make_manager(config.env, seed_for(config.seed, "env"))
    try:
        agent = build_agent(config, manager.spaces)
        sampler = SerialSampler(
            manager,
            agent,
            config.agent.length,  # type: ignore[attr-defined]  # every agent's config has it
            seed_for(config.seed, "env"),
            config.env.reward_clip,
            evaluation(config, config.eval.episodes),
        )
    except BaseException:
        manager.close()
        raise
    return LocalWorker(Explorer(sampler), agent.memory, agent)


def build_agent(config: RunConfig, spaces: Spaces) -> Agent:
    """The agent of a run, with networks for these spaces."""
    generator = torch.Generator().manual_seed(seed_for(config.seed, "network"))

    def make(inputs: Any, outputs: Any, late: Any = None) -> Any:
        return build_network(config.network, inputs, outputs, generator, late).to(config.device)

    cls, _ = AGENTS[config.algorithm]
    agent: Agent = cls.create(make, spaces, config.agent, seed_for(config.seed, "agent"))
    return agent


def evaluation(config: RunConfig, episodes: int, seed: int | None = None) -> Evaluation:
    """Episodes in environments like those of training, from seeds of their own."""
    seed = seed_for(config.seed if seed is None else seed, "eval")
    return Evaluation(lambda num_envs: make_manager(config.env, seed, num_envs), episodes, seed)


def seed_for(seed: int, part: str) -> int:
    """A seed for one part of a run, unrelated to those of its other parts."""
    return int(np.random.SeedSequence([seed, zlib.crc32(part.encode())]).generate_state(1)[0])


def resolve(config: RunConfig, spaces: Spaces) -> dict[str, Any]:
    """What `auto` and 0 stand for on this machine, as changes to the configuration."""
    device = config.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.zeros((), device=device)
    except (RuntimeError, AssertionError) as error:
        first = str(error).splitlines()[0]
        raise UsageError(f"device = {config.device!r}: {first}; expected cpu, cuda …") from error
    images = any(len(s.shape or ()) > 1 for k, s in spaces.observation.items() if not is_mask(k))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    # Two threads cost a small network more than they save.
    threads = config.threads or (cores or 1 if images else 1)
    every = config.eval.every or max(1, config.steps // 10)
    return {"device": device, "threads": threads, "eval": replace(config.eval, every=every)}
