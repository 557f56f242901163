"""Returns and lengths of episodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from operant.core.experience import EnvStep, TrajInfo
from operant.samplers.trajectory import TrajTracker


def step(reward: Any, ended: Any = (0, 0), valid: Any = (1, 1), **infos: Any) -> EnvStep:
    """Ends are terminations in the first environment and truncations in the second."""
    told, flags = np.array(reward, np.float32), np.array(ended, bool)
    terminated, truncated = flags & [True, False], flags & [False, True]
    return EnvStep({}, told, terminated, truncated, np.array(valid, bool), None, infos)


def test_an_episode_is_summed_until_it_ends_for_either_reason() -> None:
    tracker = TrajTracker(2)
    assert tracker.add(step([1, 10])) == []
    assert tracker.add(step([2, 20], (1, 0))) == [TrajInfo(2, 3.0)]
    assert tracker.add(step([4, 40], (0, 1))) == [TrajInfo(3, 70.0)]
    assert tracker.rewards.tolist() == [4, 0]
    assert tracker.lengths.tolist() == [1, 0]


def test_episodes_that_end_together_come_in_the_order_of_environments() -> None:
    assert TrajTracker(2).add(step([1, 2], (1, 1))) == [TrajInfo(1, 1.0), TrajInfo(1, 2.0)]


def test_a_step_that_only_resets_has_no_length() -> None:
    tracker = TrajTracker(2)
    tracker.add(step([1, 1], (1, 0)))
    tracker.add(step([0, 1], valid=(0, 1)))
    assert tracker.add(step([5, 1], (1, 0))) == [TrajInfo(1, 5.0)]


def test_an_episode_that_was_lost_is_not_told() -> None:
    tracker = TrajTracker(2)
    tracker.add(step([1, 1]))
    assert tracker.add(step([0, 1], (1, 0), valid=(0, 1))) == []
    assert tracker.add(step([5, 1], (1, 1))) == [TrajInfo(1, 5.0), TrajInfo(3, 3.0)]


def test_small_rewards_are_not_lost_beside_large_sums() -> None:
    tracker = TrajTracker(1)
    for _ in range(100):
        tracker.add(_one(0.25))
    tracker.add(_one(2.0**25))
    assert tracker.add(_one(0.25, True)) == [TrajInfo(102, 2.0**25 + 25.25)]


def _one(reward: float, ended: bool = False) -> EnvStep:
    flags = np.array([[ended], [False], [True]])
    return EnvStep({}, np.array([reward], np.float32), flags[0], flags[1], flags[2], None, {})


@pytest.mark.parametrize(
    ("infos", "expected"),
    [
        ({}, [None, None]),
        ({"is_success": np.array([True, False])}, [True, False]),
        ({"is_success": [False, True]}, [False, True]),
        (
            {"is_success": np.array([True, False]), "_is_success": np.array([True, False])},
            [True, None],
        ),
    ],
    ids=["untold", "told", "told in a list", "told by one"],
)
def test_success_is_what_the_environment_says(infos: dict[str, Any], expected: list[Any]) -> None:
    finished = TrajTracker(2).add(step([1, 1], (1, 1), **infos))
    assert [info.success for info in finished] == expected


def test_a_restored_tracker_goes_on_with_its_own_sums() -> None:
    one, two = TrajTracker(2), TrajTracker(2)
    one.add(step([1, 10]))
    two.load_state_dict(one.state_dict())
    one.add(step([100, 100]))
    assert two.add(step([2, 20], (1, 1))) == [TrajInfo(2, 3.0), TrajInfo(2, 30.0)]
