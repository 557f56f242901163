"""Several agents however their environments are laid over processes, and after resuming."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from kinds import collected, played, worker_of

from operant.core.experience import EnvStep, TrajInfo
from operant.samplers.reward_normalizer import LIMIT, RewardNormalizer
from operant.samplers.trajectory import TrajTracker

WAYS = ("parallel", "alternating")
RUNS: list[tuple[str, int, dict[str, Any]]] = [
    ("ppo", 0, {"agents": "shared"}),
    ("ppo", 4, {"agents": "shared", "agent_id": True}),
    ("ppo", 4, {"agents": "separate"}),
    ("dqn", 0, {"agents": "shared"}),
    ("sac", 4, {"agents": "separate"}),
    ("maddpg", 0, {"agent_settings": {"sub_policies": 2}}),
    ("maddpg", 4, {}),
]


@pytest.mark.parametrize(("agent", "lstm", "settings"), RUNS)
def test_chunks_are_those_of_the_serial_sampler(agent: str, lstm: int, settings: Any) -> None:
    count = 2 if agent == "ppo" else 6
    serial, *others = (
        played(way, count, agent=agent, task="team", lstm=lstm, **dict(settings))
        for way in ("serial", *WAYS)
    )
    assert "agents.reward" in serial[0][0]
    for other in others:
        for (ours, told), (theirs, also) in zip(serial, other, strict=True):
            assert [path for path in ours if ours[path] != theirs[path]] == []
            assert told == also


@pytest.mark.parametrize(("agent", "lstm", "settings"), RUNS)
def test_a_run_taken_up_again_is_the_same_run(agent: str, lstm: int, settings: Any) -> None:
    made = [
        worker_of("serial", agent=agent, task="team", lstm=lstm, seed=seed, **dict(settings))
        for seed in (3, 9)
    ]
    whole, other = made
    collected(whole, 5)
    other.load_state_dict(deepcopy(whole.state_dict()))
    assert collected(other, 4) == collected(whole, 4)
    for worker in made:
        worker.close()


def test_an_asynchronous_sampler_keeps_the_chunk_under_way() -> None:
    whole, other = (worker_of("async", task="team", seed=seed) for seed in (3, 9))
    collected(whole, 2)
    other.load_state_dict(deepcopy(whole.state_dict()))
    assert collected(other, 2) == collected(whole, 2)
    whole.close()
    other.close()


def test_returns_are_summed_by_agent() -> None:
    worker = worker_of("serial", task="team")
    collected(worker, 1, learn=False)
    worker.close()
    found = worker.explorer.finished[0]
    each = {"agent_0": 3.0, "agent_1": 50.0, "agent_2": 90.0}  # 1 + 2; 11 + … + 14; 21 + … + 24
    assert found == TrajInfo(4, 143.0, None, each)


def test_rewards_are_clipped_agent_by_agent() -> None:
    worker = worker_of("serial", task="team", env={"reward_clip": 12.0})
    chunk = worker.explorer.update()
    worker.close()
    assert chunk.agents["reward"][:3, 0].tolist() == [[1, 11, 12], [2, 12, 12], [0, 12, 12]]
    assert chunk.reward[:3, 0].tolist() == [24.0, 26.0, 24.0]
    assert worker.explorer.finished[0].reward == 143.0


def test_normalised_rewards_are_the_sum_of_those_of_agents() -> None:
    worker = worker_of("serial", task="team")
    chunk = RewardNormalizer(8, 0.9)(worker.explorer.update())
    worker.close()
    assert np.allclose(chunk.reward, chunk.agents["reward"].sum(-1))
    assert float(chunk.agents["reward"].abs().max()) <= LIMIT


def test_a_tracker_of_some_environments_sums_in_the_arrays_of_all() -> None:
    tracker = TrajTracker(3, ("a", "b"))
    no = np.zeros(1, bool)
    step = EnvStep(
        {}, np.ones(1, np.float32), no, no, ~no, None, {}, {"reward": np.array([[0.25, 0.75]])}
    )
    tracker.part(1, 2).add(step)
    assert tracker.rewards.tolist() == [0.0, 1.0, 0.0]
    assert tracker.state_dict()["agents"].tolist() == [[0, 0], [0.25, 0.75], [0, 0]]
