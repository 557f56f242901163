"""Episodes of a user's own loop as the one record."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from operant.core.errors import UsageError
from operant.frameworks.episode import Transition, episode_of, joined
from operant.memory.replay import ExperienceReplay


def step(seen: float, after: float, terminal: Any = False, **others: Any) -> dict[str, Any]:
    return {
        "state": {"pos": torch.tensor([[float(seen)]])},
        "action": {"move": torch.tensor([[1]])},
        "next_state": {"pos": torch.tensor([[float(after)]])},
        "reward": seen / 10,
        "terminal": terminal,
        **others,
    }


WHOLE = [step(1, 2), step(2, 3), step(3, 4, True)]


def rows(chunk: Any, name: str = "state.pos") -> list[float]:
    found: list[float] = chunk.observation[name].flatten().tolist()
    return found


def test_an_episode_is_a_chunk_whose_end_is_known() -> None:
    chunk = episode_of(WHOLE).chunk
    assert rows(chunk) == [1, 2, 3, 4]
    assert chunk.next_observation["state.pos"].flatten().tolist() == [2, 3, 4]
    assert chunk.reward.flatten().tolist() == pytest.approx([0.1, 0.2, 0.3])
    assert chunk.terminated.flatten().tolist() == [False, False, True]
    assert chunk.action["move"].shape == (3, 1, 1)
    assert chunk.first.flatten().tolist() == [True, False, False, True]


def test_an_end_without_terminal_is_a_truncation() -> None:
    chunk = episode_of(WHOLE[:2]).chunk
    assert chunk.truncated.flatten().tolist() == [False, True]
    assert not chunk.terminated.any()


def test_a_step_that_does_not_lead_to_the_next_one_ends_what_came_before() -> None:
    chunk = episode_of([step(1, 2), step(5, 6), step(6, 7, True)]).chunk
    assert chunk.replaced.flatten().tolist() == [True, False, True]
    assert chunk.truncated.flatten().tolist() == [True, False, False]
    assert chunk.next_observation["state.pos"].flatten().tolist() == [2, 6, 7]


def test_transitions_and_dicts_give_the_same_record() -> None:
    one, other = episode_of(WHOLE).chunk, episode_of([Transition(**s) for s in WHOLE]).chunk
    assert rows(one) == rows(other)
    assert torch.equal(one.reward, other.reward)


def test_numbers_beside_a_step_are_columns_and_objects_lists() -> None:
    extra = [
        step(1, 2, log_prob=torch.tensor([[-0.5]]), tag="a"),
        step(2, 3, log_prob=-1.0, tag="b"),
    ]
    found = episode_of(extra)
    assert found.chunk.memo["log_prob"].tolist() == [[-0.5], [-1.0]]
    assert found.objects == {"tag": ["a", "b"]}


def test_joined_episodes_keep_their_own_ends() -> None:
    chunk = joined([episode_of(WHOLE[:2]).chunk, episode_of(WHOLE).chunk])
    assert rows(chunk) == [1, 2, 1, 2, 3, 4]
    assert chunk.next_observation["state.pos"].flatten().tolist() == [2, 3, 2, 3, 4]
    assert chunk.first.flatten().tolist() == [True, False, True, False, False, True]


def test_a_replay_gives_back_every_step_with_what_it_led_to() -> None:
    memory = ExperienceReplay(50, 1, seed=0)
    for steps in (WHOLE, WHOLE[:2], [step(7, 8, True)]):
        memory.store(episode_of(steps).chunk)
    drawn = memory.sample(200, 1).experience
    seen, after = (drawn.observation["state.pos"][i, :, 0].tolist() for i in (0, 1))
    assert set(zip(seen, after, strict=True)) == {(1, 2), (2, 3), (3, 4), (7, 8)}


NAN = torch.tensor([[math.nan]])
BAD: list[tuple[Any, str]] = [
    ([], "the episode has no steps"),
    ([{k: v for k, v in WHOLE[0].items() if k != "reward"}], "step 0: lacks 'reward'"),
    ([step(1, 2), step(2, 3) | {"state": {"pos": NAN}}], r"step 1: state\['pos'\] holds NaN"),
    (
        [step(1, 2) | {"state": {"pos": torch.zeros(2, 1)}}],
        r"is \(2, 1\); expected a tensor of one",
    ),
    ([step(1, 2) | {"state": {"pos": 3.0}}], r"step 0: state\['pos'\] is float"),
    ([step(1, 2) | {"reward": math.inf}], "step 0: reward is inf"),
    ([step(1, 2) | {"reward": "x"}], "reward = 'x': expected one number"),
    ([step(1, 2, terminal=1)], "step 0: terminal = 1; expected True or False"),
    ([step(1, 2), step(2, 3, tag=1)], "step 1: has"),
    ([step(1, 2) | {"action": None}], "step 0: action = None"),
    ([step(1, 2), step(2, 3) | {"state": {"pos": torch.zeros(1, 2)}}], "step 1: .*and step 0's"),
]


@pytest.mark.parametrize(("steps", "said"), BAD)
def test_a_fault_names_its_step_and_key(steps: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        episode_of(steps)


@pytest.mark.parametrize("yes", [True, np.True_, torch.tensor([True]), torch.tensor([[True]])])
def test_a_terminal_may_be_a_flag_of_any_kind(yes: Any) -> None:
    assert episode_of([step(1, 2, terminal=yes)]).chunk.terminated.item() is True
