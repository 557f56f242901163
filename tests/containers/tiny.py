"""Whole training runs that take a fraction of a second."""

from __future__ import annotations

from typing import Any

import torch

from operant.containers.local import LocalWorker
from operant.core import tree
from operant.core.schedule import Schedule
from operant.envs.env_settings import EnvConfig
from operant.networks.assemble import NetworkConfig
from operant.session.build import build
from operant.session.run_settings import run_config
from operant.session.try_out import try_out

CONTINUOUS: dict[str, Any] = {
    "length": 5,
    "replay_size": 120,
    "learning_starts": 30,
    "batch_size": 8,
    "updates_per_step": 0.2,
    "sequence": 3,
}
PENDULUMS = ("sac", "ddpg", "ddpg-per", "hddpg", "td3")  # agents for continuous actions
# The replays are small, so that they wrap around; the schedules end within the run.
AGENTS: dict[str, dict[str, Any]] = {
    "a2c": {"length": 5, "entropy_coef": 0.01, "lr": Schedule(1e-3, 0.0, 200)},
    "ppo": {"length": 16, "minibatch": 16, "epochs": 2, "lr": Schedule(1e-3, 0.0, 200)},
    "trpo": {"length": 16, "minibatch": 16, "epochs": 2, "lr": Schedule(1e-3, 0.0, 200)},
    "vtrace": {"length": 5, "lr": Schedule(1e-3, 0.0, 200)},
    "acer": {
        "length": 5,
        "lr": Schedule(1e-3, 0.0, 200),
        "replay_size": 120,
        "learning_starts": 30,
        "batch_size": 4,
    },
    "dqn": {
        "length": 4,
        "epsilon": Schedule(1.0, 0.1, 150),
        "replay_size": 120,
        "learning_starts": 30,
        "batch_size": 8,
        "target_every": 7,
        "n_step": 2,
        "sequence": 3,
    },
    "rainbow": {
        "length": 4,
        "replay_size": 120,
        "learning_starts": 30,
        "batch_size": 8,
        "target_every": 7,
        "atoms": 7,
        "sequence": 3,
    },
    "ddpg": CONTINUOUS | {"exploration": "ornstein-uhlenbeck", "exploration_scale": 0.2},
    "ddpg-per": CONTINUOUS | {"prioritized": True},
    "hddpg": CONTINUOUS | {"decrease_rate": 0.5},
    "td3": CONTINUOUS | {"critics": 2, "policy_every": 2, "target_noise": 0.2},
    "sac": CONTINUOUS,
}


def worker_of(
    agent: str, lstm: int = 0, manager: Any = "simple", seed: int = 3, **settings: Any
) -> LocalWorker:
    """A container for three CartPoles, or Pendulums, cut short so that episodes end."""
    cls = run_config(agent)
    default = cls().agent
    sampler, envs = settings.pop("sampler", "serial"), settings.pop("envs", 3)
    if sampler == "alternating":
        manager = "subproc"
    return build(
        try_out(
            cls(
                seed=seed,
                sampler=sampler,
                device="cpu",
                threads=1,
                agent=type(default)(**AGENTS[agent] | settings),
                env=EnvConfig(
                    id="Pendulum-v1" if agent in PENDULUMS else "CartPole-v1",
                    num_envs=envs,
                    manager=manager,
                    workers=1,
                    time_limit=17,
                ),
                network=NetworkConfig(hidden=(8,), lstm=lstm),
            )
        )
    )


def numbers(state: Any) -> dict[str, Any]:
    """Every leaf of a state by its path, in a form that compares exactly."""
    return {
        path: (str(x.dtype), x.tolist()) if hasattr(x, "tolist") else x
        for path, x in tree.leaves(state)
    }


def weights(worker: LocalWorker) -> torch.Tensor:
    """All weights of the network that acts, in one row."""
    return torch.cat([p.detach().flatten() for p in worker.network.parameters()])
