"""The buffers of seed 003."""

from __future__ import annotations

import copy

import pytest
import torch
from modules import episode

from operant.core.errors import UsageError
from operant.frameworks.buffer import Buffer, PrioritizedBuffer


def filled(length: int = 4, size: int = 50) -> Buffer:
    buffer = Buffer(size)
    buffer.store_episode([step | {"tag": t} for t, step in enumerate(episode(length))])
    return buffer


def test_all_steps_come_in_order_with_columns_for_their_attributes() -> None:
    count, columns = filled().sample_batch(-1, sample_method="all")
    assert columns is not None
    state, action, reward, next_state, terminal, others = columns
    assert count == 4
    assert (state["state"].shape, action["action"].shape, reward.shape) == ((4, 3), (4, 1), (4, 1))
    assert torch.equal(state["state"][1:], next_state["state"][:-1])
    assert terminal.flatten().tolist() == [False, False, False, True]
    assert others["tag"].flatten().tolist() == [0, 1, 2, 3]


def test_unique_samples_are_at_most_what_there_is() -> None:
    count, columns = filled().sample_batch(100, sample_attrs=["tag"])
    assert columns is not None
    assert (count, sorted(columns[0].flatten().tolist())) == (4, [0, 1, 2, 3])


def test_a_function_may_choose() -> None:
    chosen = filled().sample_batch(
        2, sample_method=lambda buffer, size: [3] * size, sample_attrs=["tag"]
    )
    assert chosen[1] is not None
    assert chosen[1][0].flatten().tolist() == [3, 3]


def test_without_concatenation_columns_are_lists_of_steps() -> None:
    _, columns = filled().sample_batch(-1, False, sample_method="all", sample_attrs=["state"])
    assert columns is not None
    assert [row["state"].shape for row in columns[0]] == [(1, 3)] * 4


def test_an_empty_buffer_gives_nothing() -> None:
    buffer = filled()
    buffer.clear()
    assert (buffer.size(), buffer.sample_batch(3)) == (0, (0, None))
    assert PrioritizedBuffer(9).sample_batch(3) == (0, None, None, None)


def test_an_episode_longer_than_the_buffer_leaves_its_last_steps() -> None:
    buffer = filled(length=30, size=9)
    _, columns = buffer.sample_batch(-1, sample_method="all", sample_attrs=["tag"])
    assert columns is not None
    kept = columns[0].flatten().tolist()
    assert kept == list(range(30 - len(kept), 30))
    assert len(kept) >= 8


def test_priorities_decide_what_is_drawn_and_beta_grows() -> None:
    buffer = PrioritizedBuffer(50)
    buffer.store_episode([step | {"tag": t} for t, step in enumerate(episode(4))])
    _, _, index, _ = buffer.sample_batch(4)
    assert index is not None
    buffer.update_priority(torch.zeros(4), buffer.memory.starts())
    buffer.update_priority(torch.tensor([1e12]), buffer.memory.starts()[2:3])
    _, columns, _, _ = buffer.sample_batch(4, sample_attrs=["tag"])
    assert columns is not None
    assert columns[0].flatten().tolist() == [2, 2, 2, 2]
    assert buffer.beta == pytest.approx(0.402)


def test_what_was_saved_is_held_again() -> None:
    one, other = filled(), Buffer(50)
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    assert other.size() == 4


@pytest.mark.parametrize("method", ["some", ""])
def test_an_unknown_method_is_refused(method: str) -> None:
    with pytest.raises(UsageError, match="expected random_unique, random, all or a function"):
        filled().sample_batch(2, sample_method=method)


def test_an_unknown_attribute_is_refused() -> None:
    with pytest.raises(UsageError, match="no step has 'nothing'"):
        filled().sample_batch(2, sample_attrs=["nothing"])
