"""The parts of a run are made and put together here, and nowhere else."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch

from operant.agents.registry import agent_class
from operant.agents.several_agents import SeparateAgents, SharedAgents
from operant.containers.local import LocalWorker
from operant.core.errors import UsageError
from operant.core.objects import is_name
from operant.core.protocols import Agent, EnvironmentManager, Network, Sampler
from operant.core.seeds import seed_for
from operant.core.spaces import Shape, Space, Spaces
from operant.envs.env_settings import EnvConfig
from operant.envs.interface import Interface
from operant.envs.managers.choose import cores, make_manager, make_part, make_subproc, native
from operant.memory.replay import ExperienceReplay
from operant.memory.replay_settings import make_replay
from operant.memory.rollout import RolloutCache
from operant.networks.assemble import build_network
from operant.networks.by_path import OwnNetwork, OwnNetworkConfig, build_own_network
from operant.networks.ensemble import build_ensemble
from operant.networks.modular import ModularNetwork
from operant.networks.split import SplitNetwork
from operant.samplers.alternating import AlternatingSampler
from operant.samplers.asynchronous import AsyncSampler
from operant.samplers.collector import Collecting
from operant.samplers.evaluate import Evaluation, never
from operant.samplers.explorer import Explorer
from operant.samplers.parallel import ParallelSampler, Share
from operant.samplers.reward_normalizer import RewardNormalizer
from operant.samplers.serial import SerialSampler
from operant.session.env_errors import env_errors, named_manager
from operant.session.resolve import reward_discount, worker_count
from operant.session.run_settings import RunConfig


class Trial(NamedTuple):
    """A run that was tried out: its configuration without `auto`, and the agent made for it."""

    config: RunConfig
    spaces: Spaces
    agent: Agent
    why: str  # reasons for what `auto` became, one a line
    interface: Interface | None = None  # of the environment, to be saved with the run


def build(trial: Trial, stopping: Callable[[], bool] = never) -> LocalWorker:
    """The container of a run, around the agent of its trial, ready to train.

    As soon as `stopping()` is true, an evaluation ends without a result.
    """
    config, agent = trial.config, trial.agent
    evaluation = build_evaluation(config, config.eval.episodes)
    evaluation.stopping = stopping
    sampler = build_sampler(config, agent, evaluation)
    if config.compile == "on":
        agent.compile()
    gamma = reward_discount(config)
    normalizer = None if gamma is None else RewardNormalizer(config.env.num_envs, gamma)
    explorer = Explorer(sampler, reward_normalizer=normalizer)
    return LocalWorker(explorer, agent.memory, agent)


class PartsOfRun:
    """Makes the networks and memories of a run's agent: see `core.protocols.Parts`."""

    def __init__(self, config: RunConfig, spaces: Spaces) -> None:
        self.config, self.spaces = config, spaces
        self.generator = torch.Generator().manual_seed(seed_for(config.seed, "network"))

    def network(
        self,
        outputs: Mapping[str, Shape],
        late: Mapping[str, Space] | None = None,
        members: int = 1,
        noisy: bool = False,
    ) -> Network:
        """A network, or an ensemble, from the run's observations to `outputs`."""
        settings = self.config.network
        wanted = self.spaces.observation, outputs, self.generator, late, noisy
        made: list[OwnNetwork] | list[ModularNetwork | SplitNetwork]
        if isinstance(settings, OwnNetworkConfig):
            made = [build_own_network(settings, *wanted) for _ in range(members)]
        else:
            made = [build_network(settings, *wanted) for _ in range(members)]
        return (made[0] if members == 1 else build_ensemble(made)).to(self.config.device)

    def rollout(self, length: int) -> RolloutCache:
        """A memory of one chunk."""
        return RolloutCache(length)

    def replay(self, settings: Any, seed: int) -> ExperienceReplay:
        """A replay buffer."""
        return make_replay(settings, self.spaces, seed)


def build_agent(config: RunConfig, spaces: Spaces) -> Agent:
    """The agent of a run, with networks and a memory for these spaces."""
    cls, parts = agent_class(config.algorithm), PartsOfRun(config, spaces)
    seed, settings = seed_for(config.seed, "agent"), config.agent
    agent: Agent
    if config.agents == "shared":
        agent = SharedAgents.create(parts, cls, settings, seed, config.agent_id)
    elif config.agents == "separate":
        agent = SeparateAgents.create(parts, cls, settings, seed)
    else:
        agent = cls.create(parts, settings, seed)
    return agent


def build_sampler(config: RunConfig, agent: Agent, evaluation: Evaluation) -> Sampler:
    """What collects a run's experience, with its environments."""
    seed, env = seed_for(config.seed, "env"), config.env
    length = config.agent.length
    plan = Collecting(length, seed, env.reward_clip, config.decorrelate, config.mid_batch_reset)
    if config.sampler in ("parallel", "async"):
        kind = ParallelSampler if config.sampler == "parallel" else AsyncSampler
        limits = env.step_timeout, env.max_restarts
        _check_sendable(config, agent)
        return kind(_shares(config, seed), agent, plan, evaluation, *limits)
    managers = _managers(config, seed)
    try:
        if config.sampler == "alternating":
            return AlternatingSampler(managers, agent, plan, evaluation)
        settings = (plan.reward_clip, evaluation, plan.decorrelate, plan.mid_batch_reset)
        return SerialSampler(managers[0], agent, length, seed, *settings)
    except BaseException:
        for manager in managers:
            manager.close()
        raise


def _check_sendable(config: RunConfig, agent: Agent) -> None:
    """Refuse parts of the user's own that a worker process could not import."""
    if not (is_name(config.algorithm) or isinstance(config.network, OwnNetworkConfig)):
        return
    try:
        here = b"__main__" in pickle.dumps(agent.actor)
        why = "they are defined in the script that runs" if here else ""
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        why = str(error)
    if why:
        raise UsageError(
            f"sampler = {config.sampler!r}: worker processes cannot import the parts of "
            f"{config.algorithm} ({why}); define them at the top level of a module of their own, "
            f"or use sampler = 'serial'"
        )


def build_evaluation(config: RunConfig, episodes: int, seed: int | None = None) -> Evaluation:
    """Whole episodes in environments like those of training, with seeds of their own."""
    seed = seed_for(config.seed if seed is None else seed, "eval")
    env = replace(config.env, episodic_life=False)  # a score is that of a whole game
    with env_errors(env.id):
        if _has_workers(config) and not native(env):
            env = replace(env, manager="subproc")  # which may crash without ending the run
    return Evaluation(partial(named_manager, env, seed), episodes, seed, config.eval.max_steps)


def _has_workers(config: RunConfig) -> bool:
    """Whether environments are stepped in other processes than this one."""
    here = config.env.manager in ("simple", "native")
    return config.sampler in ("parallel", "async") or (config.sampler == "alternating" and not here)


def _managers(config: RunConfig, seed: int) -> list[EnvironmentManager]:
    """The environments of a sampler in this process: all in one, or in two halves."""
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


def _shares(config: RunConfig, seed: int) -> Sequence[Share]:
    """How many environments each worker process gets, and what makes them there."""
    env = _env_of_workers(config)
    ends = np.linspace(0, env.num_envs, worker_count(config) + 1).astype(int).tolist()
    return [
        (stop - start, partial(make_part, env, seed, start, stop)) for start, stop in pairwise(ends)
    ]


def _env_of_workers(config: RunConfig) -> EnvConfig:
    """The environments as worker processes make them."""
    if config.env.manager == "subproc":
        raise UsageError(
            f"env.manager = 'subproc': the workers of sampler = {config.sampler!r} step their "
            f"environments themselves; use env.manager = 'auto' or 'simple', or sampler = 'serial'"
        )
    # A native batch of fewer environments would not be a part of the larger one.
    several = config.env.manager == "auto" and worker_count(config) > 1
    return replace(config.env, manager="simple") if several else config.env
