"""Every agent on tasks with known answers: what it does and what it believes that to be worth."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from operant.agents import AGENTS
from operant.containers.local import LocalWorker
from operant.core.hidden_state import HiddenState
from operant.core.schedule import Schedule
from operant.envs.gym import EnvConfig
from operant.envs.probe import Variant, best_return
from operant.networks.build import NetworkConfig
from operant.session.build import build, evaluation
from operant.session.run_config import EvalConfig, RunConfig, run_config

GAMMA = 0.9
LR = Schedule(0.01)
OFF: dict[str, Any] = {"learning_starts": 50, "replay_size": 2000, "batch_size": 32}
SETTINGS: dict[str, dict[str, Any]] = {
    "a2c": {"length": 5, "max_grad_norm": 0},
    "ppo": {"length": 16, "minibatch": 32, "epochs": 8, "max_grad_norm": 0},
    "dqn": {"target_every": 20, "updates_per_step": 0.5, "epsilon": Schedule(1.0, 0.1, 300)} | OFF,
    # Hardly any temperature, so that what is learned is the worth of rewards alone.
    "sac": {"tau": 0.1, "updates_per_step": 0.5, "alpha": 1e-3, "learn_alpha": False} | OFF,
}
STEPS = {"a2c": 6000, "ppo": 3000, "dqn": 1000, "sac": 700}
Task = tuple[str, dict[str, Any]]


def config_of(name: str, task: str, kwargs: Any = None, lstm: int = 0, **agent: Any) -> RunConfig:
    cls = AGENTS[name][1]
    settings: dict[str, Any] = {"gamma": GAMMA, "lr": LR} | SETTINGS[name] | agent
    return run_config(name)(
        device="cpu",
        threads=1,
        agent=cls(**settings),
        env=EnvConfig(id=f"operant/{task}-v0", num_envs=8, kwargs=kwargs or {}),
        network=NetworkConfig(hidden=(16,), lstm=lstm),
        eval=EvalConfig(episodes=30),
    )


def trained(config: RunConfig, steps: int) -> LocalWorker:
    worker = build(config)
    worker.run(steps)
    worker.env.close()
    return worker


def values(worker: LocalWorker, *shown: float) -> list[float]:
    """What the agent holds each of these observations to be worth."""
    agent: Any = worker.agent
    seen = {"observation": torch.tensor(shown)[:, None]}
    with torch.no_grad():
        if hasattr(agent, "critics"):
            return soft_values(agent, seen).tolist()
        out, _ = agent.network(seen, HiddenState())
    return (out["value"].squeeze(-1) if "value" in out else out["action"].amax(-1)).tolist()


def soft_values(agent: Any, seen: dict[str, Tensor]) -> Tensor:
    params, _ = agent.actor(seen, HiddenState())
    action = {f"action.{name}": agent.distribution.mode(params, {})[name] for name in agent.smooth.parts}
    worths = []
    for critic in agent.critics.values():
        q, _ = critic(seen | action, HiddenState())
        if "value" in q:
            worths.append(q["value"].squeeze(-1))
        else:
            worths.append((q["action"] * params["action"].softmax(-1)).sum(-1))
    return torch.stack(worths).mean(0)
