"""A run taken up again is the run that never stopped, bit for bit."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from tiny import AGENTS, numbers, weights, worker_of

STEPS = 120
SETTINGS: list[tuple[str, int, str]] = [
    *((agent, lstm, "simple") for agent in AGENTS for lstm in (0, 4)),
    *((agent, 0, "native") for agent in ("a2c", "ppo", "dqn")),
    ("acer", 0, "native"),
    ("ppo", 4, "native"),
    ("dqn", 4, "native"),
    ("ppo", 0, "subproc"),
    ("dqn", 0, "subproc"),
]


def played(agent: str, lstm: int, manager: str, cut: int) -> tuple[Any, Any]:
    """State and episodes of a run that was stopped at `cut`, saved, and taken up in fresh parts."""
    worker = worker_of(agent, lstm, manager).run(cut)
    if cut < 2 * STEPS:
        state, count = deepcopy(worker.state_dict()), worker.local_step_count
        worker.env.close()
        worker = worker_of(agent, lstm, manager, seed=99)
        worker.load_state_dict(state)
        worker.run(2 * STEPS - count, initial_step=count)
    state, told = deepcopy(worker.state_dict()), worker.drain()
    worker.env.close()
    return numbers(state), told


@pytest.mark.parametrize(("agent", "lstm", "manager"), SETTINGS)
def test_a_run_taken_up_again_is_the_same_run(agent: str, lstm: int, manager: str) -> None:
    whole, told = played(agent, lstm, manager, 2 * STEPS)
    parts, also = played(agent, lstm, manager, STEPS)
    different = [path for path in whole | parts if whole.get(path) != parts.get(path)]
    assert different == []
    assert also == told
    assert len(told[0]) > 9  # episodes ended before and after
    assert "explorer.itr" in whole
    assert any(path.startswith("agent.") and "optim" in path for path in whole)


def test_a_run_may_be_taken_up_again_and_again() -> None:
    whole = worker_of("dqn").run(STEPS)
    worker = worker_of("dqn")
    while worker.local_step_count < STEPS:
        state = deepcopy(worker.state_dict())
        worker = worker_of("dqn", seed=worker.local_step_count)
        worker.load_state_dict(state)
        worker.run(24, initial_step=worker.local_step_count)
    assert numbers(worker.state_dict()) == numbers(whole.state_dict())


def test_the_state_may_be_loaded_twice() -> None:
    state = deepcopy(worker_of("ppo").run(STEPS).state_dict())
    found = []
    for _ in range(2):
        worker = worker_of("ppo", seed=99)
        worker.load_state_dict(state)
        found.append(numbers(worker.run(STEPS, initial_step=STEPS).state_dict()))
    assert found[0] == found[1]


def test_the_same_seed_gives_the_same_run_and_another_another() -> None:
    found = [weights(worker_of("ppo", seed=seed).run(96)).tolist() for seed in (3, 3, 4)]
    assert found[0] == found[1]
    assert found[0] != found[2]


def test_simple_and_subproc_give_the_same_run() -> None:
    workers = [worker_of("ppo", manager=manager) for manager in ("simple", "subproc")]
    found = [weights(worker.run(96)).tolist() for worker in workers]
    workers[1].env.close()
    assert found[0] == found[1]
