"""Every agent on tasks with known answers: what it does and what it believes that to be worth."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from operant.agents.acer import ACER
from operant.agents.ddpg import DDPG
from operant.agents.dqn import DQN
from operant.agents.maddpg import MADDPG
from operant.agents.modes import noisy_layers
from operant.agents.registry import AGENTS
from operant.agents.sac import SAC
from operant.containers.local import LocalWorker
from operant.core.schedule import Schedule
from operant.envs.env_settings import EnvConfig
from operant.envs.probe_tasks import Variant, best_return
from operant.networks.assemble import NetworkConfig
from operant.session.build import build, build_evaluation
from operant.session.run_settings import EvalConfig, RunConfig, run_config
from operant.session.try_out import try_out

GAMMA = 0.8
OFF: dict[str, Any] = {"learning_starts": 50, "replay_size": 2000, "batch_size": 32}
SETTINGS: dict[str, dict[str, Any]] = {
    "a2c": {"length": 5, "max_grad_norm": 0, "optimizer": "adam"},
    "ppo": {"length": 16, "minibatch": 32, "epochs": 8, "max_grad_norm": 0},
    "trpo": {"length": 16, "minibatch": 32, "max_kl": 0.05},
    "vtrace": {"length": 5, "max_grad_norm": 0, "optimizer": "adam", "entropy_coef": 0},
    "acer": {"length": 5, "entropy_coef": 0.0, "max_grad_norm": 0, "replay_ratio": 2.0} | OFF,
    "dqn": {"target_every": 20, "updates_per_step": 0.5, "epsilon": Schedule(1.0, 0.1, 300)} | OFF,
    "rainbow": {"target_every": 20, "updates_per_step": 0.5, "atoms": 33}
    | {"value_min": -2.0, "value_max": 6.0, "n_step": 2}
    | OFF,
    "ddpg": {"tau": 0.1, "updates_per_step": 0.75, "exploration_scale": 0.15} | OFF,
    "maddpg": {"tau": 0.1, "updates_per_step": 0.75, "exploration_scale": 0.15} | OFF,
    # Hardly any temperature, so that what is learned is the worth of rewards alone.
    "sac": {"tau": 0.1, "updates_per_step": 0.5, "alpha": 1e-3, "learn_alpha": False} | OFF,
}
STEPS = {
    **{"a2c": 3000, "ppo": 1500, "trpo": 1500, "vtrace": 3000, "acer": 2000},
    **{"dqn": 700, "rainbow": 1200, "ddpg": 1000, "maddpg": 1000, "sac": 450},
}
# Learning rates; 0.01 for the others.
RATES = {"a2c": 0.03, "vtrace": 0.03, "ddpg": 0.02, "maddpg": 0.02}
CONTINUOUS = ("ddpg", "maddpg")  # agents that take no discrete actions


def config_of(name: str, task: str, kwargs: Any = None, lstm: int = 0, **agent: Any) -> RunConfig:
    cls = AGENTS[name].config
    kwargs = ({"action": "box"} if name in CONTINUOUS else {}) | (kwargs or {})
    steps = agent.pop("steps", STEPS[name])
    rate = agent.pop("rate", RATES.get(name, 0.01))
    settings: dict[str, Any] = (
        {"gamma": GAMMA, "lr": Schedule(rate, rate / 10, steps)} | SETTINGS[name] | agent
    )
    return run_config(name)(
        steps=steps,
        device="cpu",
        threads=1,
        sampler="serial",
        agent=cls(**settings),
        env=EnvConfig(id=f"operant/{task}-v0", num_envs=8, kwargs=kwargs),
        network=NetworkConfig(hidden=(16,), lstm=lstm),
        eval=EvalConfig(episodes=30),
    )


def trained(config: RunConfig) -> LocalWorker:
    worker = build(try_out(config))
    worker.run(config.steps)
    worker.env.close()
    return worker


def values(worker: LocalWorker, seen: Tensor) -> list[float]:
    """What the agent holds each row `[T, B, ...]` of fresh episodes to be worth, row by row."""
    agent: Any = worker.agent
    agent = agent.members[""] if isinstance(agent, MADDPG) else agent
    observation = {"observation": seen}
    with torch.no_grad():
        if isinstance(agent, SAC):
            params = run(agent.network, observation)
            mode = agent.distribution.mode(params, {})
            late = {f"action.{name}": mode[name] for name in agent.continuous.parts}
            judged = run(agent.critics.network, observation | late)
            members = [{k: x[..., i, :] for k, x in judged.items()} for i in range(2)]
            worth = torch.stack([expected(q, params) for q in members]).mean(0)
        elif isinstance(agent, DQN):
            for layer in noisy_layers(agent.network):
                layer.still()
            predicted = agent.head.read(run(agent.network, observation))
            worth = agent.head.q_values(predicted)["action"].amax(-1)
        elif isinstance(agent, DDPG):
            push = run(agent.network, observation)["policy.action"].tanh()
            worth = run(agent.critics.network, observation | {"action.action": push})["value"]
        else:
            out = run(getattr(agent, "critic", agent.network), observation)
            worth = expected(out, out) if isinstance(agent, ACER) else out["value"].squeeze(-1)
    return worth.flatten().tolist()


def run(network: Any, observation: dict[str, Tensor]) -> dict[str, Tensor]:
    steps, envs = observation["observation"].shape[:2]
    first = torch.zeros(steps, envs, dtype=torch.bool)
    out, _ = network(observation, network.initial_state(envs), first)
    return dict(out)


def expected(q: dict[str, Tensor], params: dict[str, Tensor]) -> Tensor:
    if "value" in q:
        return q["value"].squeeze(-1)
    return (q["q.action"] * params["policy.action"].softmax(-1)).sum(-1)


def mean_return(config: RunConfig, worker: LocalWorker) -> float:
    played = build_evaluation(config, 30).run(worker.agent)
    return sum(info.reward for info in played) / len(played)


def nearly(name: str, best: Any, discrete: float = 0.0) -> Any:
    """This near to the best; a continuous action is never quite the one that is asked for."""
    return pytest.approx(best, rel=0, abs=0.2 if name in CONTINUOUS else discrete)


VALUES = {
    "ConstantReward": ([0.0], [1.0]),
    "ObservedReward": ([-1.0, 1.0], [-1.0, 1.0]),
    "DelayedReward": ([0.0, 1.0], [GAMMA, 1.0]),
    "TruncatedForever": ([0.0], [1 / (1 - GAMMA)]),
}


@pytest.mark.parametrize("task", VALUES)
@pytest.mark.parametrize("name", SETTINGS)
def test_the_value_of_rewards_that_no_action_changes(name: str, task: str) -> None:
    shown, worth = VALUES[task]
    worker = trained(config_of(name, task))
    assert values(worker, torch.tensor(shown)[None, :, None]) == pytest.approx(worth, rel=0.08)


@pytest.mark.parametrize("task", ["DelayedReward", "TruncatedForever"])
@pytest.mark.parametrize("name", ["ppo", "ddpg", "sac"])
def test_the_value_of_continuous_actions(name: str, task: str) -> None:
    shown, worth = VALUES[task]
    worker = trained(config_of(name, task, {"action": "box"}))
    assert values(worker, torch.tensor(shown)[None, :, None]) == pytest.approx(worth, rel=0.08)


@pytest.mark.parametrize("name", SETTINGS)
def test_the_action_that_is_asked_for_and_what_it_is_worth(name: str) -> None:
    config = config_of(name, "MatchAction")
    worker = trained(config)
    assert mean_return(config, worker) == nearly(name, best_return(Variant()))
    assert values(worker, torch.eye(3)[None]) == nearly(name, [1.0] * 3, 0.1)


RECURRENT: dict[str, dict[str, Any]] = {
    "a2c": {"steps": 8000, "length": 15},
    "ppo": {"steps": 4000, "minibatch": 128, "epochs": 4},
    "trpo": {"steps": 4000, "minibatch": 128},
    "vtrace": {"steps": 8000, "length": 15},
    "acer": {"steps": 3000, "length": 6},
    "dqn": {"steps": 1000, "sequence": 3, "updates_per_step": 0.25},
    "rainbow": {"steps": 2400, "sequence": 3, "n_step": 1},
    "ddpg": {"steps": 2000, "sequence": 3, "updates_per_step": 0.5, "tau": 0.2}
    | {"learning_starts": 300, "rate": 0.015},
    "maddpg": {"steps": 2000, "sequence": 3, "updates_per_step": 0.5, "tau": 0.2}
    | {"learning_starts": 300, "rate": 0.015},
    "sac": {"steps": 1000, "sequence": 3, "updates_per_step": 0.25, "alpha": 0.02, "tau": 0.2}
    | {"learning_starts": 200, "rate": 0.02},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_what_was_shown_two_steps_ago_is_remembered_and_its_worth_discounted(name: str) -> None:
    config = config_of(name, "MatchAction", {"memory": True}, 16, **RECURRENT[name])
    worker = trained(config)
    assert mean_return(config, worker) == nearly(name, best_return(Variant(memory=True)))
    cue, blank, asked = torch.eye(4)[:3], torch.zeros(3, 4), torch.eye(4)[[3, 3, 3]]
    worth = [GAMMA**2] * 3 + [GAMMA] * 3 + [1.0] * 3
    assert values(worker, torch.stack([cue, blank, asked])) == nearly(name, worth, 0.15)
