"""Where episodes begin, and which environments are active."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from counter import Counter
from kinds import TASKS, worker_of
from script import SEED, Script, manager_of

from operant.core.protocols import Rows
from operant.envs.managers.simple import SimpleEnvManager
from operant.envs.managers.subproc import SubProcEnvManager
from operant.envs.providers.gymnasium import GymEnv
from operant.memory.rollout import RolloutCache
from operant.samplers.collector import Collecting, Collector
from operant.samplers.serial import SerialSampler


def counter(index: int) -> GymEnv:
    return GymEnv(Counter(), index)


def fns(count: int) -> list[Callable[[], GymEnv]]:
    return [partial(counter, i) for i in range(count)]


MANAGERS = pytest.mark.parametrize("make", [SimpleEnvManager, SubProcEnvManager])


@MANAGERS
def test_environments_that_are_not_active_stay_as_they_are(make: Any) -> None:
    manager = make(fns(3))
    before = manager.reset(SEED)["observation"].copy()
    manager.set_active(np.array([True, False, True]))
    step = manager.step({"action": np.ones(3, np.int64)})
    assert step.valid.tolist() == [True, False, True]
    assert step.reward.tolist() == pytest.approx([1.1, 0.0, 1.1])
    assert (step.observation["observation"] == before).all(1).tolist() == [False, True, False]
    assert not (step.terminated | step.truncated).any()
    manager.set_active(np.ones(3, bool))
    assert manager.step({"action": np.ones(3, np.int64)}).valid.all()
    manager.close()


@MANAGERS
def test_part_of_a_batch_is_seeded_as_in_the_whole(make: Any) -> None:
    manager = make(fns(3), first=5)
    assert manager.reset(10)["observation"][:, 0].tolist() == [15, 16, 17]
    manager.close()


class Untried(SimpleEnvManager):
    """Raises an error when something asks whether it can be resumed exactly."""

    def _try_resuming(self) -> bool:
        raise AssertionError("environments were made only to try them")


def test_asking_what_a_manager_can_do_does_not_try_its_environments() -> None:
    manager: Any = Untried(fns(2))
    found: Any = Collector(manager, Script(), RolloutCache(5), Collecting(5, SEED, decorrelate=4))
    found.start_envs(SEED, 4)
    assert found.manager.valid.all()


def started(rows: Rows | None = None, most: int = 40, count: int = 6) -> Any:
    envs = fns(count) if rows is None else fns(count)[rows.start : rows.stop]
    manager = SimpleEnvManager(envs, SEED, rows.start if rows else 0)
    found = Collector(manager, Script(), RolloutCache(5), Collecting(5, SEED), rows)
    found.start_envs(SEED, most)
    return found


def test_decorrelated_starts_lie_in_different_episodes_and_steps() -> None:
    found = started()
    seen = found.observation["observation"]
    assert len({tuple(row) for row in seen[:, 1:].tolist()}) >= 5
    assert seen[:, 1].max() > 8  # episodes of at most three steps, up to 39 steps
    assert seen[:, 2].tolist() == found.tracker.lengths.tolist()
    assert found.manager.valid.all()


def test_where_an_environment_starts_does_not_depend_on_its_neighbours() -> None:
    whole = started().observation["observation"].tolist()
    parts = [
        started(Rows(a, b, 6)).observation["observation"].tolist() for a, b in [(0, 1), (1, 6)]
    ]
    assert parts[0] + parts[1] == whole


def test_without_decorrelation_nothing_is_played() -> None:
    assert started(most=0).observation["observation"][:, 1:].sum() == 0


def pausing() -> SerialSampler:
    return SerialSampler(manager_of("simple"), Script(), 7, SEED, mid_batch_reset=False)


def test_an_environment_pauses_from_the_end_of_its_episode_to_the_end_of_the_chunk() -> None:
    chunk, finished = pausing().obtain_samples(0)
    ends = chunk.ended.int().argmax(0)
    expected = [[t <= int(end) for t in range(7)] for end in ends]
    assert chunk.valid.T.tolist() == expected
    assert len(finished) == 3
    assert sum(info.length for info in finished) == int(chunk.valid.sum())


def test_the_next_chunk_begins_with_the_next_episode() -> None:
    sampler = pausing()
    for itr in range(3):
        chunk, _ = sampler.obtain_samples(itr)
        seen = chunk.observation["observation"]
        assert seen[0, :, 1].tolist() == [itr] * 3
        assert seen[0, :, 2].tolist() == [0, 0, 0]
        assert bool(chunk.first[0].all())
        assert bool(chunk.valid[0].all())


def test_random_starts_keep_to_masks() -> None:
    assert TASKS["masked"][1]["mask"]
    worker = worker_of("serial", task="masked", decorrelate=20)  # raises at a forbidden action
    sampler: Any = worker.sampler
    assert sampler.tracker.lengths.max() <= 3
