"""The verbs of a rollout: what is written is what is read."""

from __future__ import annotations

from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest
import torch
from streams import Streams

from operant.core import tree
from operant.core.experience import EnvStep, HiddenState, Memo
from operant.memory.rollout import RolloutCache

ACTION = {"a": torch.tensor([3, 4])}


def memo(state: float = 0.5) -> Memo:
    return Memo({"log_prob": torch.tensor([-1.0, -2.0])}, HiddenState(h=torch.full((2, 1), state)))


def shown(*values: float) -> dict[str, Any]:
    return {"o": np.array(values, np.float32)[:, None]}


def step(
    seen: Any, ended: tuple[int, int] = (0, 0), final: Any = None, valid: Any = (1, 1)
) -> EnvStep:
    """Ends are truncations in the first environment and terminations in the second."""
    terminated, truncated, valid = np.array([[0, ended[1]], [ended[0], 0], valid], bool)
    reward = np.array([1, 2], np.float32)
    return EnvStep(seen, reward, terminated, truncated, valid, final, {})


def started(length: int = 2) -> RolloutCache:
    cache = RolloutCache(length)
    cache.start(shown(10, 20), ACTION, memo())
    return cache


def put(cache: RolloutCache, *steps: EnvStep) -> Any:
    for one in steps:
        cache.agent_write(ACTION, memo())
        cache.env_write(one)
    return cache.read()


def test_start_allocates_a_row_more_of_what_is_seen() -> None:
    chunk = started(3).read()
    sizes = {name: len(leaf) for name, leaf in tree.leaves(chunk)}
    assert {name for name, n in sizes.items() if n == 4} == {
        "observation.o",
        "hidden_state.h",
        "first",
    }
    assert set(sizes.values()) == {3, 4}
    assert chunk.action["a"].dtype == torch.int64


def test_start_begins_episodes_with_what_is_seen() -> None:
    cache = started()
    assert cache.observation()["o"].tolist() == [[10], [20]]
    assert cache.read().first.tolist() == [[True, True], [False, False], [False, False]]


def test_what_the_agent_and_the_environment_write_is_read() -> None:
    chunk = put(started(1), step(shown(11, 21), ended=(0, 1), final=shown(0, 25)))
    assert chunk.action["a"].tolist() == [[3, 4]]
    assert chunk.memo["log_prob"].tolist() == [[-1, -2]]
    assert chunk.hidden_state["h"].tolist() == [[[0], [0]], [[0.5], [0.5]]]
    assert chunk.reward.tolist() == [[1, 2]]
    assert chunk.terminated.tolist() == [[False, True]]
    assert chunk.truncated.tolist() == [[False, False]]
    assert chunk.valid.tolist() == [[True, True]]
    assert chunk.observation["o"].squeeze(-1).tolist() == [[10, 20], [11, 21]]


def test_write_is_both_in_one_call() -> None:
    one, two = started(), RolloutCache(2)
    steps = [step(shown(11, 21)), step(shown(12, 22), ended=(1, 0), final=shown(13, 0))]
    put(one, *steps)
    for before, after in zip([shown(10, 20), shown(11, 21)], steps, strict=True):
        two.write(before, ACTION, memo(), after)
    for (path, x), (_, y) in zip(tree.leaves(one.read()), tree.leaves(two.read()), strict=True):
        assert x.equal(y), path


def test_it_is_ready_after_the_last_step() -> None:
    cache = started(2)
    found = [cache.ready()]
    for _ in range(2):
        put(cache, step(shown(1, 1)))
        found.append(cache.ready())
    assert found == [False, False, True]


def test_a_reward_given_replaces_that_of_the_step() -> None:
    cache = started()
    cache.agent_write(ACTION, memo())
    cache.env_write(step(shown(1, 1)), np.array([-7, -8], np.float32))
    assert cache.read().reward[0].tolist() == [-7, -8]


def test_same_step_an_episode_begins_in_the_row_after_its_end() -> None:
    chunk = put(started(), step(shown(11, 21), (1, 0), shown(15, 0)), step(shown(12, 22)))
    assert chunk.first.tolist() == [[True, True], [True, False], [False, False]]
    assert chunk.replaced.tolist() == [[True, False], [False, False]]


def test_same_step_the_final_observation_is_what_the_step_led_to() -> None:
    chunk = put(started(1), step(shown(11, 21), (1, 0), shown(15, 99)))
    assert chunk.final_observation["o"].squeeze(-1).tolist() == [[15, 0]]
    assert chunk.next_observation["o"].squeeze(-1).tolist() == [[15, 21]]


def test_next_step_an_episode_begins_after_the_row_that_is_not_valid() -> None:
    chunk = put(started(), step(shown(15, 21), (1, 0)), step(shown(11, 22), valid=(0, 1)))
    assert chunk.first.tolist() == [[True, True], [False, False], [True, False]]
    assert chunk.valid.tolist() == [[True, True], [False, True]]
    assert chunk.replaced.tolist() == [[False, False], [False, False]]
    assert chunk.next_observation["o"][0].tolist() == [[15], [21]]


def test_a_lost_step_is_not_valid_and_what_follows_begins_an_episode() -> None:
    lost = step(shown(11, 21), (1, 0), shown(10, 0), valid=(0, 1))
    chunk = put(started(), step(shown(10, 20)), lost)
    assert chunk.first.tolist() == [[True, True], [False, False], [True, False]]
    assert chunk.valid.tolist() == [[True, True], [False, True]]
    assert chunk.cut.tolist() == [[True, False], [True, False]]
    assert chunk.next_observation["o"][0].tolist() == [[10], [20]]


def test_an_end_of_the_last_chunk_is_not_seen_in_this_one() -> None:
    cache = started(1)
    put(cache, step(shown(11, 21), (1, 1), shown(15, 25)))
    cache.clear()
    chunk = put(cache, step(shown(12, 22)))
    assert chunk.replaced.tolist() == [[False, False]]
    assert chunk.ended.tolist() == [[False, False]]
    assert chunk.next_observation["o"].tolist() == [[[12], [22]]]


def test_clear_begins_where_the_chunk_ended() -> None:
    cache = started(1)
    put(cache, step(shown(11, 21), (1, 0), shown(15, 0)))
    cache.clear()
    assert not cache.ready()
    assert cache.observation()["o"].tolist() == [[11], [21]]
    assert cache.read().first[0].tolist() == [True, False]
    assert cache.read().hidden_state["h"][0].tolist() == [[0.5], [0.5]]


def test_clear_of_half_a_chunk_begins_at_the_cursor() -> None:
    cache = started(3)
    put(cache, step(shown(11, 21)))
    cache.clear()
    assert cache.observation()["o"].tolist() == [[11], [21]]


def test_a_write_to_a_full_cache_clears_it_first() -> None:
    cache = RolloutCache(1)
    cache.write(shown(10, 20), ACTION, memo(), step(shown(11, 21)))
    cache.write(shown(11, 21), ACTION, memo(), step(shown(12, 22)))
    assert cache.read().observation["o"].squeeze(-1).tolist() == [[11, 21], [12, 22]]


def test_the_state_to_act_with_is_fresh_where_an_episode_begins() -> None:
    cache = started()
    assert cache.hidden_state()["h"].tolist() == [[0], [0]]
    put(cache, step(shown(11, 21), (1, 0), shown(15, 0)))
    assert cache.hidden_state()["h"].tolist() == [[0], [0.5]]
    assert cache.read().hidden_state["h"][1].tolist() == [[0.5], [0.5]]


def test_without_memory_there_is_no_state_to_act_with() -> None:
    cache = RolloutCache(1)
    cache.start(shown(1, 2), ACTION, Memo({}, HiddenState()))
    assert cache.hidden_state() == {}


def test_store_keeps_the_chunk_itself() -> None:
    chunk = put(started(2), step(shown(1, 1)), step(shown(2, 2)))
    cache = RolloutCache(2)
    cache.store(chunk)
    assert cache.ready()
    assert cache.read() is chunk
    cache.clear()
    assert not cache.ready()


def test_a_step_written_after_a_stored_chunk_is_read() -> None:
    cache = started(1)
    put(cache, step(shown(11, 21)))
    cache.store(put(started(1), step(shown(91, 92))))
    cache.write(shown(50, 60), ACTION, memo(), step(shown(51, 61)))
    assert cache.read().observation["o"].squeeze(-1).tolist() == [[50, 60], [51, 61]]


def test_a_submitted_chunk_is_received_as_it_was() -> None:
    channel: SimpleQueue[Any] = SimpleQueue()
    actor, learner = RolloutCache(1, channel), RolloutCache(1, channel)
    actor.write(shown(10, 20), ACTION, memo(), step(shown(11, 21)))
    actor.submit()
    assert not actor.ready()
    actor.write(shown(11, 21), ACTION, memo(), step(shown(77, 78)))
    received = learner.receive()
    assert received.observation["o"].squeeze(-1).tolist() == [[10, 20], [11, 21]]
    assert learner.ready()
    assert learner.read() is received


def test_chunks_are_received_in_the_order_they_were_submitted() -> None:
    channel: SimpleQueue[Any] = SimpleQueue()
    actor, learner, streams = RolloutCache(2, channel), RolloutCache(2, channel), Streams(1, False)
    begins = []
    for _ in range(3):
        begins.append(streams.fill(actor).observation["o"][0, 0].item())
        actor.submit()
    assert [learner.receive().observation["o"][0, 0].item() for _ in range(3)] == begins


@pytest.mark.parametrize("verb", ["submit", "receive", "read"])
def test_what_cannot_be_done_is_said(verb: str) -> None:
    with pytest.raises(AssertionError, match=r"no channel|nothing was written"):
        getattr(RolloutCache(1), verb)()


@pytest.mark.parametrize("waits", [False, True], ids=["same-step", "next-step"])
@pytest.mark.parametrize("turns", [1, 4, 5, 7, 10])
@pytest.mark.parametrize("fresh", [True, False])
def test_a_restored_rollout_goes_on_to_the_same_chunk(waits: bool, turns: int, fresh: bool) -> None:
    streams, original, other = Streams(3, waits), RolloutCache(5), RolloutCache(5)
    if not fresh:
        Streams(3, waits, seed=9).turn(other)
    for _ in range(turns):
        streams.turn(original)
    other.load_state_dict(original.state_dict())
    streams.turn(original, other)
    while not original.ready():
        streams.turn(original, other)
    for (path, x), (_, y) in zip(
        tree.leaves(_meant(original.read())), tree.leaves(_meant(other.read())), strict=True
    ):
        assert x.equal(y), path


def _meant(chunk: Any) -> Any:
    """The chunk without the final observations of episodes that did not end."""
    return chunk._replace(final_observation=chunk.next_observation)


def test_the_state_of_a_full_rollout_is_one_row() -> None:
    streams, cache = Streams(1, False), RolloutCache(4)
    streams.fill(cache)
    state = cache.state_dict()
    assert len(state["observation"]["o"]) == 1
    assert len(state["reward"]) == 0
    assert state["observation"]["o"][0, 0].tolist() == [streams.envs[0].seen]


def test_the_state_does_not_change_with_what_comes_after() -> None:
    streams, cache = Streams(1, False), RolloutCache(3)
    streams.turn(cache)
    state = cache.state_dict()
    before = state["observation"]["o"].copy()
    for _ in range(5):
        streams.turn(cache)
    assert state["observation"]["o"].tolist() == before.tolist()


def test_the_state_of_nothing_is_nothing() -> None:
    cache = RolloutCache(2)
    cache.load_state_dict(RolloutCache(2).state_dict())
    assert cache.state_dict() == {}
