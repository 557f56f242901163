"""The same run under every sampler, and its chunks in a form that compares exactly."""

from __future__ import annotations

from typing import Any

import numpy as np

from operant.containers.local import LocalWorker
from operant.core import tree
from operant.core.experience import Experience
from operant.core.schedule import Schedule
from operant.envs.env_settings import EnvConfig
from operant.networks.assemble import NetworkConfig
from operant.session.build import build
from operant.session.run_settings import run_config
from operant.session.try_out import try_out

OFF: dict[str, Any] = {"learning_starts": 60, "replay_size": 400, "batch_size": 8, "length": 4}
AGENTS: dict[str, dict[str, Any]] = {
    "ppo": {"length": 13, "minibatch": 32, "epochs": 2},
    "trpo": {"length": 13, "minibatch": 32, "epochs": 2},
    "vtrace": {"length": 13},
    "acer": {**OFF, "length": 6},
    "dqn": {"epsilon": Schedule(1.0, 0.1, 150), "sequence": 3, **OFF},
    "rainbow": {"atoms": 7, "sequence": 3, **OFF},
    "ddpg": {"updates_per_step": 0.1, "exploration": "ornstein-uhlenbeck", **OFF},
    "td3": {"updates_per_step": 0.1, "sequence": 3, **OFF},
    "maddpg": {"updates_per_step": 0.1, "sequence": 3, **OFF},
    "sac": {"updates_per_step": 0.1, "sequence": 3, **OFF},
}
TASKS: dict[str, tuple[str, dict[str, Any]]] = {
    "cartpole": ("CartPole-v1", {}),
    "pendulum": ("Pendulum-v1", {}),
    "images": ("pictures:Pictures-v0", {}),
    "masked": ("operant/MatchAction-v0", {"mask": True, "length": 3, "action": "multidiscrete"}),
    "team": ("team_tasks:Team", {"masks": "info"}),
    "dicts": (
        "operant/MatchAction-v0",
        {"mask": True, "memory": True, "action": "dict", "observation": "dict"},
    ),
}


def worker_of(sampler: Any, agent: str = "ppo", task: str = "cartpole", **more: Any) -> LocalWorker:
    """A container of eight environments, whose episodes are short, under this sampler."""
    cls, (env_id, kwargs) = run_config(agent), TASKS[task]
    managers = {"serial": "simple", "alternating": "subproc"}
    env: dict[str, Any] = {
        "id": env_id,
        "num_envs": 8,
        "workers": 2,
        "manager": managers.get(sampler, "auto"),
        "time_limit": 11 if not kwargs else 0,
        "kwargs": kwargs,
    }
    config = cls(
        seed=more.pop("seed", 3),
        device="cpu",
        threads=1,
        sampler=sampler,
        agent=type(cls().agent)(**AGENTS[agent] | more.pop("agent_settings", {})),
        env=EnvConfig(**env | more.pop("env", {})),
        network=NetworkConfig(
            hidden=more.pop("hidden", (8,)), lstm=more.pop("lstm", 0), precision="fp32"
        ),
        **more,
    )
    return build(try_out(config))


def numbers(chunk: Experience) -> dict[str, Any]:
    """Every leaf of a chunk by its path; what nobody reads is left out."""
    found = {path: np.copy(x.numpy()) for path, x in tree.leaves(chunk)}
    for path, x in found.items():
        if path.startswith("final_observation"):
            x[~found["replaced"]] = 0
    return {path: (str(x.dtype), x.tolist()) for path, x in found.items()}


def collected(worker: LocalWorker, count: int, learn: bool = True) -> list[Any]:
    """Chunks and episodes, with an update after each."""
    found = []
    for _ in range(count):
        chunk = worker.explorer.update()
        found.append((numbers(chunk), worker.explorer.finished))
        if learn:
            worker.memory.store(chunk)
            worker.agent.update()
    return found


def played(sampler: str, count: int, **settings: Any) -> list[Any]:
    """The first chunks of a run."""
    worker = worker_of(sampler, **settings)
    try:
        return collected(worker, count)
    finally:
        worker.close()
