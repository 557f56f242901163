"""Collecting while learning: one chunk old, never more, and the same every time."""

from __future__ import annotations

import time
from copy import deepcopy
from itertools import pairwise
from typing import Any

import pytest
from kinds import collected, numbers, worker_of

from operant.containers.local import LocalWorker


def late(worker: LocalWorker, count: int) -> list[Any]:
    """Chunks that a serial sampler collects with the weights of one rollout before."""
    network, found = worker.agent.network, []
    before = deepcopy(network.state_dict())
    for _ in range(count):
        now = deepcopy(network.state_dict())
        network.load_state_dict(before)
        chunk = worker.explorer.update()
        found.append((numbers(chunk), worker.explorer.finished))
        network.load_state_dict(now)
        before = now
        worker.memory.store(chunk)
        worker.agent.update()
    return found


@pytest.mark.parametrize("lstm", [0, 4])
def test_chunks_are_those_of_a_serial_sampler_whose_weights_come_one_rollout_late(
    lstm: int,
) -> None:
    serial, other = worker_of("serial", lstm=lstm), worker_of("async", lstm=lstm)
    expected, found = late(serial, 5), collected(other, 5)
    other.close()
    for (ours, told), (theirs, also) in zip(expected, found, strict=True):
        assert [path for path in ours if ours[path] != theirs[path]] == []
        assert told == also


def test_how_fast_either_side_is_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    quick, slow = worker_of("async", "dqn"), worker_of("async", "dqn")
    update = slow.agent.update

    def dawdle() -> Any:
        time.sleep(0.01)
        return update()

    monkeypatch.setattr(slow.agent, "update", dawdle)
    assert collected(quick, 20) == collected(slow, 20)
    quick.close()
    slow.close()


def test_staleness_is_the_updates_of_one_rollout() -> None:
    worker, updates, stale = worker_of("async"), [0], []
    for _ in range(4):
        collected(worker, 1)
        stale.append(worker.sampler.metrics["staleness"])
        updates.append(worker.agent.updates)
    worker.close()
    assert stale == [0, *(b - a for a, b in pairwise(updates))][:4]
    assert stale[1] == 6  # two epochs over 104 steps in minibatches of about 32


def test_staleness_is_told_as_a_metric() -> None:
    worker = worker_of("async").run(400)
    _, metrics = worker.drain()
    spent = worker.drain_seconds()
    worker.close()
    assert metrics["staleness"] == pytest.approx(6 * 3 / 4)
    assert {"acting", "stepping", "storing", "learning", "waiting", "idling"} == set(spent)
    assert spent["acting"] > 0


@pytest.mark.parametrize("agent", ["ppo", "dqn"])
def test_saving_waits_for_the_chunk_under_way_and_changes_nothing(agent: str) -> None:
    plain, saved, loaded = (worker_of("async", agent, seed=s) for s in (3, 3, 9))
    collected(plain, 3)
    collected(saved, 3)
    state = deepcopy(saved.state_dict())
    assert set(state["explorer"]["sampler"]["pending"]) >= {"chunk", "finished", "version"}
    loaded.load_state_dict(state)
    expected = collected(plain, 3)
    assert collected(saved, 3) == expected
    assert collected(loaded, 3) == expected
    stale = {worker.sampler.metrics["staleness"] for worker in (plain, saved, loaded)}
    assert len(stale) == 1
    for worker in (plain, saved, loaded):
        worker.close()


def test_a_native_batch_is_collected_as_under_the_serial_sampler() -> None:
    env = {"manager": "native", "workers": 1}
    serial, other = worker_of("serial", env=env), worker_of("async", env=env)
    assert late(serial, 4) == collected(other, 4)
    assert other.env.exact
    other.close()
