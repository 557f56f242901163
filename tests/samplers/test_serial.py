"""Acting and stepping in turn gives what stepping by hand gives, whatever the autoreset mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from script import ENVS, MODES, SEED, Script, by_hand, manager_of

from operant.core import tree
from operant.core.errors import EnvironmentFault
from operant.core.experience import EnvStep, Experience, TrajInfo
from operant.samplers.collector import check_finite
from operant.samplers.serial import SerialSampler

EVERY = pytest.mark.parametrize("mode", MODES)


def sampler_of(mode: str = "simple", length: int = 7, **settings: Any) -> SerialSampler:
    return SerialSampler(manager_of(mode), Script(), length, SEED, **settings)


def collect(sampler: SerialSampler, count: int) -> tuple[list[Experience], list[TrajInfo]]:
    """Copies of the next chunks, and the episodes that ended in them."""
    found, finished = [], []
    for itr in range(count):
        chunk, ended = sampler.obtain_samples(itr)
        found.append(tree.map(torch.clone, chunk))
        finished += ended
    return found, finished


def transitions(chunks: list[Experience], b: int) -> list[Any]:
    """The valid transitions of environment `b`."""
    return [
        (
            chunk.observation["observation"][t, b].tolist(),
            int(chunk.action["action"][t, b]),
            pytest.approx(float(chunk.reward[t, b])),
            bool(chunk.terminated[t, b]),
            bool(chunk.truncated[t, b]),
            chunk.next_observation["observation"][t, b].tolist(),
        )
        for chunk in chunks
        for t in range(len(chunk.reward))
        if chunk.valid[t, b]
    ]


@EVERY
def test_chunks_hold_what_stepping_by_hand_gives(mode: str) -> None:
    chunks, _ = collect(sampler_of(mode), 10)
    for b in range(ENVS):
        found = transitions(chunks, b)
        assert found == by_hand(SEED + b, len(found))[0]
        assert len(found) > 45
        assert sum(t[3] for t in found) > 2  # tasks ended
        assert sum(t[4] for t in found) > 2  # the clock ended some


@EVERY
def test_episodes_are_told_with_their_length_and_return(mode: str) -> None:
    sampler = sampler_of(mode)
    chunks, finished = collect(sampler, 5)
    expected = [e for b in range(ENVS) for e in by_hand(SEED + b, len(transitions(chunks, b)))[1]]
    assert sorted(info.length for info in finished) == sorted(length for length, _ in expected)
    found = sorted(info.reward for info in finished)
    assert found == pytest.approx(sorted(total for _, total in expected), rel=1e-6)


@EVERY
def test_the_state_carried_in_counts_from_the_beginning_of_the_episode(mode: str) -> None:
    chunks, _ = collect(sampler_of(mode), 4)
    for chunk in chunks:
        steps = chunk.observation["observation"][:-1, :, 2]
        assert chunk.memo["steps"].equal(steps)
        kept = chunk.hidden_state["steps"].squeeze(-1) * ~chunk.first
        assert kept[:-1].equal(steps)


@EVERY
def test_first_is_where_the_step_count_is_zero(mode: str) -> None:
    chunks, _ = collect(sampler_of(mode), 4)
    for chunk in chunks:
        assert chunk.first.equal(chunk.observation["observation"][..., 2] == 0)


@EVERY
def test_a_chunk_begins_where_the_last_one_ended(mode: str) -> None:
    one, two = collect(sampler_of(mode), 2)[0]
    assert one.observation["observation"][-1].equal(two.observation["observation"][0])
    assert one.first[-1].equal(two.first[0])
    assert one.hidden_state["steps"][-1].equal(two.hidden_state["steps"][0])


def test_only_next_step_wastes_steps() -> None:
    valid = {mode: collect(sampler_of(mode), 3)[0] for mode in MODES}
    shares = {
        mode: float(torch.cat([c.valid for c in v]).double().mean()) for mode, v in valid.items()
    }
    assert (shares["simple"], shares["same-step"], shares["disabled"]) == (1, 1, 1)
    assert shares["next-step"] < 0.8


def test_the_chunk_is_one_buffer() -> None:
    sampler = sampler_of()
    one, two = (sampler.obtain_samples(itr)[0] for itr in range(2))
    assert one.reward.data_ptr() == two.reward.data_ptr()


def test_clipped_rewards_are_learned_from_and_raw_ones_are_told() -> None:
    (raw,), told = collect(sampler_of(length=9), 1)
    (clipped,), also = collect(sampler_of(length=9, reward_clip=1.5), 1)
    assert float(raw.reward.max()) > 4
    assert clipped.reward.equal(raw.reward.clamp(-1.5, 1.5))
    assert [info.reward for info in also] == [info.reward for info in told]


def test_making_a_sampler_explores_nothing() -> None:
    sampler = sampler_of(length=2)
    sampler.obtain_samples(0)
    assert sampler.agent.explored == [False, True, True]  # type: ignore[attr-defined]  # Script's


class Corrupt:
    """Counters whose third answer is spoilt."""

    def __init__(self, spoil: Callable[[EnvStep], None]) -> None:
        self.manager, self.spoil, self.steps = manager_of("simple"), spoil, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.manager, name)

    def step(self, actions: Any) -> EnvStep:
        self.steps += 1
        step = self.manager.step(actions)
        if self.steps == 3:
            self.spoil(step)
        return step


def spoil_observation(step: EnvStep) -> None:
    step.observation["observation"][1, 3] = np.nan


def spoil_reward(step: EnvStep) -> None:
    step.reward[2] = -np.inf


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (spoil_observation, r"environment 1, step 3 .*: observation\.observation\[3\] is nan"),
        (spoil_reward, "environment 2, step 2 .*: reward is -inf; expected a finite number"),
    ],
)
def test_a_number_that_is_none_is_named_by_place(spoil: Any, message: str) -> None:
    manager: Any = Corrupt(spoil)
    with pytest.raises(EnvironmentFault, match=message):
        SerialSampler(manager, Script(), 3, SEED).obtain_samples(0)


def test_large_numbers_whose_sum_overflows_are_fine() -> None:
    chunk = sampler_of().obtain_samples(0)[0]
    chunk.observation["observation"][:] = 3e38
    check_finite(chunk)
    assert not np.isfinite(float(chunk.observation["observation"].sum()))


@pytest.mark.parametrize("mode", ["simple", "next-step", "same-step"])
def test_a_restored_sampler_goes_on_with_the_same_chunks(mode: str) -> None:
    original, other = sampler_of(mode), sampler_of(mode)
    collect(original, 2)
    other.load_state_dict(original.state_dict())
    (ours, told), (theirs, also) = collect(original, 3), collect(other, 3)
    assert told == also
    for one, two in zip(ours, theirs, strict=True):
        for b in range(ENVS):
            assert transitions([one], b) == transitions([two], b)


def test_seconds_say_where_the_time_went() -> None:
    sampler = sampler_of()
    sampler.obtain_samples(0)
    assert set(sampler.seconds) == {"acting", "stepping", "storing"}
    assert min(sampler.seconds.values()) > 0


def test_without_an_evaluation_it_says_so() -> None:
    with pytest.raises(ValueError, match="evaluation = None: this sampler cannot evaluate"):
        sampler_of().evaluate_agents(0)
