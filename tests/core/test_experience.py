"""What the record says beside its fields, and the recurrent state it carries."""

from __future__ import annotations

import torch

from operant.core.experience import Experience, HiddenState


def chunk() -> Experience:
    """Three steps of two environments: the first ends at row 1, the second at row 2."""
    flags = torch.zeros(3, 2, dtype=torch.bool)
    terminated, truncated, first = flags.clone(), flags.clone(), torch.zeros(4, 2).bool()
    terminated[1, 0] = truncated[2, 1] = first[2, 0] = first[3, 1] = True
    return Experience(
        observation={"o": torch.arange(8.0).view(4, 2), "i": torch.arange(16).view(4, 2, 2)},
        hidden_state=HiddenState(h=torch.ones(4, 2, 3)),
        first=first,
        action={"a": torch.zeros(3, 2)},
        memo={},
        reward=torch.ones(3, 2),
        terminated=terminated,
        truncated=truncated,
        valid=~flags,
        final_observation={"o": torch.full((3, 2), -1.0), "i": torch.full((3, 2, 2), -2)},
        replaced=terminated | truncated,
    )


def test_ended_is_either_reason() -> None:
    assert chunk().ended.tolist() == [[False, False], [True, False], [False, True]]


def test_a_story_is_cut_at_an_end_and_before_a_step_that_was_lost() -> None:
    whole = chunk()
    whole.valid[1, 1] = whole.valid[0, 0] = False
    assert whole.cut.tolist() == [[False, True], [True, False], [False, True]]


def test_masks_are_zero_where_an_episode_begins() -> None:
    assert chunk().masks.tolist() == [[1, 1], [1, 1], [0, 1], [1, 0]]


def test_next_observation_is_the_final_one_where_it_was_replaced() -> None:
    assert chunk().next_observation["o"].tolist() == [[2, 3], [-1, 5], [6, -1]]


def test_next_observation_replaces_whole_arrays() -> None:
    found = chunk().next_observation["i"]
    assert found[:, 0].tolist() == [[4, 5], [-2, -2], [12, 13]]


def test_next_observation_is_the_next_row_of_what_a_replay_gives() -> None:
    sampled = chunk()._replace(final_observation=None, replaced=None)
    assert sampled.next_observation["o"].tolist() == [[2, 3], [4, 5], [6, 7]]


def test_a_row_of_a_chunk_is_a_record_too() -> None:
    row = chunk()[1]
    assert type(row) is Experience
    assert row.ended.tolist() == [True, False]
    assert row.observation["o"].tolist() == [2, 3]
    assert row.hidden_state["h"].shape == (2, 3)


def test_a_chunk_is_cut_along_its_environments() -> None:
    assert chunk()[:, 1:].truncated.tolist() == [[False], [False], [True]]
    assert chunk()[:, 1:].masks.tolist() == [[1], [1], [1], [0]]


def test_detach_leaves_the_numbers_and_no_gradient() -> None:
    h = torch.ones(2, 3, requires_grad=True) * 2
    state = HiddenState(h=h).detach()
    assert type(state) is HiddenState
    assert not state["h"].requires_grad
    assert state["h"].tolist() == h.tolist()


def test_reset_zeroes_the_rows_of_the_mask_only() -> None:
    state = HiddenState(h=torch.ones(2, 2), c=torch.full((2,), 3.0))
    fresh = state.reset(torch.tensor([False, True]))
    assert fresh["h"].tolist() == [[1, 1], [0, 0]]
    assert fresh["c"].tolist() == [3, 0]
    assert state["h"].tolist() == [[1, 1], [1, 1]]


def test_reset_lets_the_gradient_through_where_it_keeps() -> None:
    h = torch.ones(2, 2, requires_grad=True)
    HiddenState(h=h).reset(torch.tensor([True, False]))["h"].sum().backward()
    assert h.grad is not None
    assert h.grad.tolist() == [[0, 0], [1, 1]]
