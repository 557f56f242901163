"""Rewards for learning are divided by the deviation of the running discounted return."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch
from kinds import collected, worker_of

from operant.core.config import AgentConfig
from operant.core.errors import UsageError
from operant.core.experience import Experience
from operant.envs.env_settings import EnvConfig
from operant.samplers.reward_normalizer import RewardNormalizer
from operant.session.compose import compose
from operant.session.resolve import resolve
from operant.session.run_settings import RunConfig
from operant.session.try_out import try_out

GAMMA = 0.9
ON: dict[str, Any] = {"env": {"normalize_reward": True}}


def chunk_of(reward: list[list[float]], **flags: list[list[int]]) -> Experience:
    """A chunk `[T, B]` with these rewards; flags that are not given are false, rows valid."""
    nothing = torch.zeros(len(reward), len(reward[0]), dtype=torch.bool)
    given = {name: torch.tensor(rows, dtype=torch.bool) for name, rows in flags.items()}
    rest = dict.fromkeys(Experience._fields, nothing) | {"valid": ~nothing, "agents": None}
    rest["first"] = torch.zeros(len(reward) + 1, len(reward[0]), dtype=torch.bool)
    return Experience(**rest | given | {"reward": torch.tensor(reward)})


def random_chunk(seed: int, length: int, envs: int, scale: float) -> Experience:
    """Episodes that end at random and steps in which nothing was decided, as a sampler marks."""
    draw = np.random.default_rng(seed)
    valid = draw.random((length, envs)) > 0.2
    ended = (draw.random((length, envs)) < 0.2) & valid
    first = np.zeros((length + 1, envs), bool)
    first[1:] = ended | ~valid
    reward = (scale * draw.normal(size=(length, envs)) * valid).tolist()
    flags = {"valid": valid.tolist(), "terminated": ended.tolist(), "first": first.tolist()}
    return chunk_of(reward, **flags)


class SlowReference:
    """Step by step, keeping every return there ever was."""

    def __init__(self, envs: int) -> None:
        self.now, self.seen = [0.0] * envs, list[float]()

    def __call__(self, chunk: Experience) -> list[list[float]]:
        for t in range(len(chunk.reward)):
            for b in range(len(self.now)):
                if chunk.first[t, b]:
                    self.now[b] = 0.0
                if chunk.valid[t, b]:
                    self.now[b] = self.now[b] * GAMMA + float(chunk.reward[t, b])
                    self.seen.append(self.now[b])
                if chunk.terminated[t, b] or chunk.truncated[t, b]:
                    self.now[b] = 0.0
        # One ten-thousandth of a return with mean 0 and variance 1 comes before all others.
        weight = 1e-4 / (1e-4 + len(self.seen))
        mean = (1 - weight) * np.mean(self.seen)
        second = weight * 1.0 + (1 - weight) * np.mean(np.square(self.seen))
        deviation = (second - mean**2 + 1e-8) ** 0.5
        divided: list[list[float]] = (chunk.reward.numpy() / deviation).clip(-10, 10).tolist()
        return divided


def test_three_steps_by_hand() -> None:
    normalizer = RewardNormalizer(1, gamma=0.5)
    chunk = normalizer(chunk_of([[2.0], [1.0], [4.0]], terminated=[[0], [1], [0]]))
    # Returns 2, 0.5 * 2 + 1 = 2, then 4 in a new episode: mean 8/3, variance 8/9.
    expected = np.array([2.0, 1.0, 4.0]) / np.sqrt(8 / 9)
    assert chunk.reward.flatten().tolist() == pytest.approx(expected.tolist(), rel=1e-3)


@pytest.mark.parametrize("length", [1, 7])
def test_chunks_agree_with_a_slow_loop(length: int) -> None:
    normalizer, reference = RewardNormalizer(3, GAMMA), SlowReference(3)
    for seed in range(12):
        chunk = random_chunk(seed, length, 3, scale=1.0 + seed)
        expected = reference(chunk)
        np.testing.assert_allclose(normalizer(chunk).reward.numpy(), expected, rtol=1e-5)


def test_a_reward_is_cut_at_ten() -> None:
    chunk = chunk_of([[0.0]] * 999 + [[-1000.0]], terminated=[[1]] * 1_000)
    assert RewardNormalizer(1, GAMMA)(chunk).reward.min() == -10.0


def test_the_collected_chunk_itself_stays_raw() -> None:
    chunk = chunk_of([[2.0], [5.0]])
    RewardNormalizer(1, GAMMA)(chunk)
    assert chunk.reward.tolist() == [[2.0], [5.0]]


def test_a_chunk_without_a_valid_row_changes_no_statistics() -> None:
    normalizer = RewardNormalizer(1, GAMMA)
    normalizer(chunk_of([[2.0], [5.0]]))
    before = deepcopy(normalizer.state_dict())
    normalizer(chunk_of([[7.0], [9.0]], valid=[[0], [0]]))
    assert normalizer.state_dict() == before


@pytest.mark.parametrize("sampler", ["parallel", "alternating"])
def test_rewards_and_returns_do_not_depend_on_the_sampler(sampler: str) -> None:
    found = []
    for kind in ("serial", sampler):
        worker = worker_of(kind, task="pendulum", **ON)
        found.append(collected(worker, 4))
        worker.close()
    assert found[0] == found[1]


@pytest.mark.parametrize("sampler", ["serial", "async"])
def test_what_is_learned_from_is_normalised_and_scores_are_raw(sampler: str) -> None:
    raw, ours = worker_of(sampler, task="pendulum"), worker_of(sampler, task="pendulum", **ON)
    reference = RewardNormalizer(8, 0.99)  # the agent's own discount factor
    for _ in range(3):  # nothing is learned, so both act alike
        given = raw.explorer.update()
        assert ours.explorer.update().reward.tolist() == reference(given).reward.tolist()
        assert ours.explorer.finished == raw.explorer.finished
    assert raw.explorer.finished or sampler == "async"
    assert ours.sampler.evaluate_agents(0) == raw.sampler.evaluate_agents(0)
    raw.close()
    ours.close()


@pytest.mark.parametrize("sampler", ["serial", "async"])
def test_a_resumed_run_goes_on_with_the_same_statistics(sampler: str) -> None:
    whole, other = (worker_of(sampler, task="pendulum", seed=s, **ON) for s in (3, 9))
    collected(whole, 2)
    other.load_state_dict(deepcopy(whole.state_dict()))
    assert collected(other, 3) == collected(whole, 3)
    whole.close()
    other.close()


def test_rewards_are_clipped_before_they_are_normalised() -> None:
    clip: dict[str, Any] = {"reward_clip": 0.5}
    clipped = worker_of("serial", task="pendulum", env=dict(clip))
    both = worker_of("serial", task="pendulum", env=clip | ON["env"])
    expected = RewardNormalizer(8, 0.99)(clipped.explorer.update()).reward
    assert both.explorer.update().reward.tolist() == expected.tolist()
    clipped.close()
    both.close()


def test_the_discount_factor_is_that_of_the_agent() -> None:
    worker = worker_of("serial", agent_settings={"gamma": 0.5}, **ON)
    assert worker.explorer.reward_normalizer is not None
    assert worker.explorer.reward_normalizer.gamma == 0.5
    worker.close()


def test_an_agent_without_a_discount_factor_is_refused() -> None:
    spaces = try_out(compose("ppo", {"threads": 1})[0]).spaces
    config = RunConfig(agent=AgentConfig(), env=EnvConfig(normalize_reward=True))
    with pytest.raises(UsageError, match=r"env.normalize_reward = True.*AgentConfig has none; add"):
        resolve(config, spaces)
