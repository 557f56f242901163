"""A configuration becomes parts: the one place where they all meet."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import torch

from operant.agents.registry import AGENTS
from operant.containers.local import LocalWorker
from operant.core.errors import UsageError
from operant.core.seeds import seed_for
from operant.core.spaces import Spaces, is_mask
from operant.envs.managers.choose import cores, make_manager, native
from operant.memory.replay import ExperienceReplay
from operant.memory.replay_settings import make_replay
from operant.memory.rollout import RolloutCache
from operant.networks.assemble import build_network
from operant.networks.ensemble import ensemble
from operant.networks.precision import resolve_precision
from operant.samplers.evaluate import Evaluation
from operant.samplers.explorer import Explorer
from operant.session.compiling import choose_compile
from operant.session.machine import prepare
from operant.session.run_settings import RunConfig
from operant.session.sampling import choose, make_sampler, worker_count

WORTH_THREADS = 4_000_000  # multiplications of a layer: between 64x64 and 256x256 for 256 rows


def build(config: RunConfig) -> LocalWorker:
    """The container of a run, ready to train."""
    prepare(config.threads)
    played = evaluation(config, config.eval.episodes)
    seed = seed_for(config.seed, "env")
    agent, sampler = make_sampler(config, partial(build_agent, config), seed, played)
    if config.compile == "on":
        agent.compile()
    return LocalWorker(Explorer(sampler), agent.memory, agent)


class PartsOfRun:
    """Makes the parts of a run's agent, from the settings of the run."""

    def __init__(self, config: RunConfig, spaces: Spaces) -> None:
        self.config, self.spaces = config, spaces
        self.generator = torch.Generator().manual_seed(seed_for(config.seed, "network"))

    def network(self, outputs: Any, late: Any = None, members: int = 1) -> Any:
        """A network, or an ensemble of some, for what the environment shows."""
        seen = self.spaces.observation
        made = [
            build_network(self.config.network, seen, outputs, self.generator, late)
            for _ in range(members)
        ]
        return (made[0] if members == 1 else ensemble(made)).to(self.config.device)

    def rollout(self, length: int) -> RolloutCache:
        """A memory of one chunk."""
        return RolloutCache(length)

    def replay(self, settings: Any, seed: int) -> ExperienceReplay:
        """A memory of the last steps."""
        return make_replay(settings, self.spaces, seed)


def build_agent(config: RunConfig, spaces: Spaces) -> Any:
    """The agent of a run, with networks for these spaces."""
    cls, _ = AGENTS[config.algorithm]
    return cls.create(PartsOfRun(config, spaces), config.agent, seed_for(config.seed, "agent"))


def evaluation(config: RunConfig, episodes: int, seed: int | None = None) -> Evaluation:
    """Episodes in environments like those of training, from seeds of their own."""
    seed = seed_for(config.seed if seed is None else seed, "eval")
    env = config.env
    if config.sampler == "parallel" and not native(env):
        env = replace(env, manager="subproc")  # the cores that collect are free meanwhile
    return Evaluation(partial(make_manager, env, seed), episodes, seed)


def resolve(config: RunConfig, spaces: Spaces) -> tuple[dict[str, Any], str]:
    """What `auto` and 0 stand for on this machine, as changes to the configuration, and why."""
    device = config.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.zeros((), device=device)
    except (RuntimeError, AssertionError) as error:
        first = str(error).splitlines()[0]
        raise UsageError(f"device = {config.device!r}: {first}; expected cpu, cuda …") from error
    changes, why = choose(config, device)
    chosen = replace(config, **changes)
    images = any(len(s.shape or ()) > 1 for k, s in spaces.observation.items() if not is_mask(k))
    # Two threads cost a small network more than they save, and collectors need a core each.
    free = max(1, cores() - (worker_count(chosen) if chosen.sampler == "async" else 0))
    threads = config.threads or (free if images or products(config) >= WORTH_THREADS else 1)
    every = config.eval.every or max(1, config.steps // 10)
    network = replace(
        config.network, precision=resolve_precision(config.network.precision, images, device)
    )
    compiled, therefore = choose_compile(config, images, device)
    changes |= {"device": device, "threads": threads, "network": network, "compile": compiled}
    changes |= {"eval": replace(config.eval, every=every)}
    return changes, "\n".join(filter(None, (why, therefore)))


def products(config: RunConfig) -> int:
    """Multiplications in the largest layer that reads vectors, for one gradient step."""
    sizes = config.network.hidden
    widest = max((a * b for a, b in pairwise(sizes)), default=0)
    agent: Any = config.agent
    rows = getattr(agent, "minibatch", 0) or getattr(agent, "batch_size", 0)
    return widest * (rows or agent.length * config.env.num_envs)
