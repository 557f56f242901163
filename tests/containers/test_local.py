"""The loop: what it counts, when it stops, what it tells."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tiny import weights, worker_of

from operant.containers.local import LATEST, LocalWorker
from operant.core.errors import TrainingFault

CHUNK = 15  # environment steps of one A2C chunk: 5 of 3 environments


def recorded(worker: LocalWorker, part: str, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the `update` of this part of the container returns, as it goes."""
    owner, seen = getattr(worker, part), []
    update = owner.update

    def call() -> Any:
        seen.append(update())
        return seen[-1]

    monkeypatch.setattr(owner, "update", call)
    return seen


def test_run_returns_the_container_itself() -> None:
    worker = worker_of("a2c")
    assert worker.run(1) is worker


@pytest.mark.parametrize(("asked", "counted"), [(0, 0), (1, 15), (15, 15), (16, 30), (100, 105)])
def test_whole_chunks_are_counted(asked: int, counted: int) -> None:
    assert worker_of("a2c").run(asked).local_step_count == counted


def test_steps_are_counted_on_from_the_initial_step() -> None:
    worker = worker_of("a2c").run(30, initial_step=1000)
    assert worker.local_step_count == 1030
    assert worker.run(15, initial_step=worker.local_step_count).local_step_count == 1045


def test_only_valid_steps_count() -> None:
    worker = worker_of("a2c", manager="native").run(300)
    steps = worker.agent.state_dict()["steps"]
    assert worker.local_step_count == steps
    assert steps >= 300
    assert steps % CHUNK != 0  # some steps only reset


def test_training_changes_the_weights() -> None:
    worker = worker_of("a2c")
    before = weights(worker)
    assert not weights(worker.run(CHUNK)).equal(before)


def test_stop_lets_run_return_after_the_update_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = worker_of("a2c")
    update = worker.explorer.update

    def stop_in_the_third() -> Any:
        if worker.explorer.itr == 2:
            worker.stop()
        return update()

    monkeypatch.setattr(worker.explorer, "update", stop_in_the_third)
    worker.run(1000)
    assert worker.local_step_count == 3 * CHUNK
    assert worker.agent.state_dict()["steps"] == 3 * CHUNK


def test_a_run_asked_to_stop_before_it_began_does_nothing() -> None:
    worker = worker_of("a2c")
    worker.stop()
    assert worker.run(100, initial_step=7).local_step_count == 7


def test_drain_gives_the_mean_of_each_metric_since_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker = worker_of("a2c")
    worker.run(CHUNK)
    worker.drain()
    seen = recorded(worker, "agent", monkeypatch)
    _, metrics = worker.run(4 * CHUNK).drain()
    assert len(seen) == 4
    assert set(metrics) == set(seen[0])
    for name in set(metrics) - set(LATEST):
        assert metrics[name] == pytest.approx(sum(m[name] for m in seen) / 4)


def test_a_rate_is_told_as_it_is_and_not_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = worker_of("a2c")
    seen = recorded(worker, "agent", monkeypatch)
    _, metrics = worker.run(4 * CHUNK).drain()
    assert metrics["learning_rate"] == seen[-1]["learning_rate"] == pytest.approx(7.75e-4)
    assert seen[0]["learning_rate"] == 1e-3


def test_a_metric_told_only_sometimes_is_the_mean_of_when_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker = worker_of("a2c")
    answers = iter([{}, {"a": 1.0}, {"a": 4.0, "b": 7.0}])
    monkeypatch.setattr(worker.agent, "update", lambda: next(answers))
    assert worker.run(3 * CHUNK).drain()[1] == {"a": 2.5, "b": 7.0}


def test_drain_gives_every_episode_once() -> None:
    worker = worker_of("a2c")
    found = [worker.run(10 * CHUNK).drain()[0] for _ in range(3)]
    assert worker.drain() == ([], {})
    played = sum(info.length for episodes in found for info in episodes)
    assert played + sum(worker.reward_buffer) == 30 * CHUNK
    assert max(info.length for episodes in found for info in episodes) == 17
    assert all(info.reward == info.length for episodes in found for info in episodes)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_metric_that_is_no_number_ends_the_run(
    value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = worker_of("a2c")
    monkeypatch.setattr(worker.agent, "update", lambda: {"fine": 1.0, "value_loss": value})
    with pytest.raises(TrainingFault, match=f"step 15: value_loss is {value}; .*learning rate"):
        worker.run(100)


def test_a_diverging_agent_ends_the_run() -> None:
    worker = worker_of("a2c")
    values = [p for name, p in worker.network.named_parameters() if "value" in name]
    values[0].data.fill_(math.nan)
    with pytest.raises(TrainingFault, match=r"step 15: [a-z_]+ is nan"):
        worker.run(100)


def test_the_reward_buffer_holds_rewards_so_far() -> None:
    assert worker_of("a2c").run(CHUNK).reward_buffer == [5.0, 5.0, 5.0]


def test_the_hidden_state_is_what_the_next_action_starts_from() -> None:
    worker = worker_of("a2c", lstm=4)
    assert all(x.abs().sum() == 0 for x in worker.hidden_state.values())
    worker.run(CHUNK)
    shapes = {tuple(x.shape) for x in worker.hidden_state.values()}
    assert shapes == {(3, 4)}
    assert all(x.abs().min() > 0 for x in worker.hidden_state.values())
    assert worker_of("a2c").run(CHUNK).hidden_state == {}


def test_its_parts_have_the_names_people_know() -> None:
    worker = worker_of("dqn")
    assert worker.env is worker.environment is worker.sampler.manager
    assert worker.exp_cache is worker.experience_cache is worker.memory is worker.agent.memory
    assert worker.network is worker.agent.network
    assert worker.env.num_envs == 3


@pytest.mark.parametrize("sampler", ["serial", "parallel", "alternating", "async"])
def test_its_parts_are_there_under_every_sampler(sampler: str) -> None:
    worker = worker_of("a2c", lstm=4, sampler=sampler, envs=4).run(4 * 5)
    try:
        assert worker.env.num_envs == 4
        assert worker.env.spaces.observation["observation"].shape == (4,)
        assert min(worker.reward_buffer) >= 5
        assert {tuple(x.shape) for x in worker.hidden_state.values()} == {(4, 4)}
        assert {"acting", "stepping", "storing", "learning"} <= set(worker.drain_seconds())
    finally:
        worker.close()


def test_what_is_stored_is_what_the_explorer_gave(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = worker_of("dqn")
    chunks = recorded(worker, "explorer", monkeypatch)
    worker.run(48)
    assert len(chunks) == 4
    assert worker.memory.stored == 48  # type: ignore[attr-defined]  # a replay


def test_seconds_are_told_once() -> None:
    worker = worker_of("a2c").run(2 * CHUNK)
    spent = worker.drain_seconds()
    assert set(spent) == {"acting", "stepping", "storing", "learning"}
    assert min(spent.values()) > 0
    assert sum(worker.drain_seconds().values()) == 0
