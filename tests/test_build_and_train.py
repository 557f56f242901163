"""rlpyt's example as one call: a sampler, an algorithm and a runner for a game."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from operant import Run, build_and_train
from operant.core.errors import UsageError
from operant.samplers import BaseSampler
from operant.samplers.alternating import AlternatingSampler
from operant.samplers.asynchronous import AsyncSampler
from operant.samplers.collector import BaseCollector
from operant.samplers.parallel import ParallelSampler
from operant.samplers.serial import SerialSampler
from operant.session.runner import BaseRunner

TINY: dict[str, Any] = {
    "steps": 256,
    "threads": 1,
    "quiet": True,
    "env": {"num_envs": 2, "workers": 2, "manager": "simple"},
    "network": {"hidden": (8,)},
    "eval": {"episodes": 1},
}
PPO = {"length": 16, "minibatch": 32, "epochs": 2}


def trained(runs: Path, run_ID: int = 0, **settings: Any) -> Run:  # noqa: N803  # rlpyt's spelling
    return build_and_train(
        "CartPole-v1", run_ID, **{**TINY, "agent": PPO, "runs": runs, **settings}
    )


def weights(run: Run) -> torch.Tensor:
    return torch.cat([x.detach().flatten() for x in run.agent.network.parameters()])


def test_parts_have_rlpyts_names_too() -> None:
    for parts in (SerialSampler, ParallelSampler, AlternatingSampler, AsyncSampler):
        assert parts.evaluate_agent is parts.evaluate_agents
        assert all(hasattr(parts, name) for name in ("obtain_samples", "close"))
    assert {"obtain_samples", "evaluate_agents"} <= vars(BaseSampler).keys()
    assert {"start_envs", "start_agent", "collect_batch"} <= vars(BaseCollector).keys()
    assert "train" in vars(BaseRunner)


def test_it_trains_the_game_to_the_end_and_leaves_a_run(tmp_path: Path) -> None:
    run = trained(tmp_path)
    assert run.agent.state_dict()["updates"] == 2 * 256 / (2 * 16)
    assert (run.config.env.id, run.config.steps) == ("CartPole-v1", 256)
    assert len(list(tmp_path.glob("*/done.json"))) == 1
    assert run.eval(episodes=2)["eval/mean_reward"] >= 8


def test_a_parallel_sampler_trains_the_same_policy(tmp_path: Path) -> None:
    serial, parallel = (trained(tmp_path, 3, sampler=name) for name in ("serial", "parallel"))
    assert parallel.config.sampler == "parallel"
    assert weights(parallel).tolist() == weights(serial).tolist()


def test_another_algorithm_is_named(tmp_path: Path) -> None:
    agent = {"learning_starts": 64, "batch_size": 8, "replay_size": 300}
    run = trained(tmp_path, algorithm="dqn", agent=agent)
    assert run.config.algorithm == "dqn"
    assert run.agent.state_dict()["updates"] > 0


def test_the_runs_number_seeds_it_and_names_its_directory(tmp_path: Path) -> None:
    one, again, other = (trained(tmp_path, number, steps=64) for number in (4, 4, 5))
    assert (one.config.seed, other.config.seed) == (4, 5)
    assert "-s4-" in one.path.name
    assert weights(one).tolist() == weights(again).tolist()
    assert (weights(one) - weights(other)).abs().max() > 1e-3


def test_no_number_of_a_gpu_is_the_cpu_even_beside_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    run = trained(tmp_path, cuda_idx=None, steps=64)
    assert run.config.device == "cpu"
    assert weights(run).device.type == "cpu"


def test_the_number_of_a_gpu_is_where_it_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 100)
    with pytest.raises(UsageError, match="device = 'cuda:99'"):  # which no machine has
        trained(tmp_path, cuda_idx=99)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"run_ID": -1}, "run_ID = -1: expected a finite number of at least 0"),
        ({"run_ID": "a"}, "run_ID = 'a': expected an integer"),
        ({"cuda_idx": 99}, r"cuda_idx = 99: expected .* this machine has \d+; None trains on"),
        ({"cuda_idx": -1}, "cuda_idx = -1: expected the number of a GPU"),
        ({"cuda_idx": "0"}, "cuda_idx = '0': expected the number of a GPU"),
        ({"game": "CartPol-v1"}, "env.id = 'CartPol-v1': no such .* mean 'CartPole-v1'"),
        ({"sampler": "paralel"}, "sampler = 'paralel': expected .* mean 'parallel'"),
        ({"algorithm": "pppo"}, "agent 'pppo' is unknown; did you mean 'ppo'"),
    ],
)
def test_a_wrong_value_is_refused_by_its_name_before_anything_is_made(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        build_and_train(**{**TINY, "runs": tmp_path, **change})
    assert len(list(tmp_path.iterdir())) == 0
