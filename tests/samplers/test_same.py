"""However acting and stepping are laid over processes, the chunks are the same, bit for bit."""

from __future__ import annotations

from copy import deepcopy
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from kinds import collected, played, worker_of

from operant.samplers import rounding

WAYS = ("parallel", "alternating")
RUNS = [
    ("ppo", "cartpole", 0),
    ("ppo", "cartpole", 4),
    ("ppo", "images", 0),
    ("ppo", "images", 4),
    ("ppo", "masked", 0),
    ("ppo", "dicts", 4),
    ("trpo", "cartpole", 0),
    ("trpo", "dicts", 4),
    ("vtrace", "masked", 0),
    ("vtrace", "pendulum", 4),
    ("acer", "cartpole", 0),
    ("acer", "cartpole", 4),
    ("dqn", "cartpole", 0),
    ("dqn", "images", 0),
    ("rainbow", "cartpole", 0),
    ("rainbow", "cartpole", 4),
    ("rainbow", "images", 0),
    ("ddpg", "pendulum", 0),
    ("ddpg", "pendulum", 4),
    ("td3", "pendulum", 0),
    ("td3", "pendulum", 4),
    ("sac", "pendulum", 4),
]


@pytest.mark.every(2)
@pytest.mark.parametrize(("agent", "task", "lstm"), RUNS)
def test_chunks_are_those_of_the_serial_sampler(agent: str, task: str, lstm: int) -> None:
    count = 5 if agent in ("ppo", "trpo", "vtrace") else 12
    serial, *others = (
        played(sampler, count, agent=agent, task=task, lstm=lstm) for sampler in ("serial", *WAYS)
    )
    assert sum(len(finished) for _, finished in serial) >= 8
    for other in others:
        for (ours, told), (theirs, also) in zip(serial, other, strict=True):
            assert [path for path in ours if ours[path] != theirs[path]] == []
            assert told == also


@pytest.mark.parametrize("sampler", WAYS)
def test_decorrelated_starts_do_not_depend_on_the_sampler(sampler: str) -> None:
    serial, other = (played(s, 2, decorrelate=9, task="masked") for s in ("serial", sampler))
    assert serial == other


@pytest.mark.parametrize("sampler", WAYS)
def test_waiting_for_the_next_batch_does_not_depend_on_the_sampler(sampler: str) -> None:
    serial, other = (played(s, 3, mid_batch_reset=False) for s in ("serial", sampler))
    assert serial == other
    valid = np.array(serial[1][0]["valid"][1])
    assert 0.4 < valid.mean() < 0.9
    assert valid[:5].all()


@pytest.mark.parametrize(("first", "then"), list(permutations(("serial", *WAYS), 2)))
def test_a_run_goes_on_under_another_sampler(first: str, then: str) -> None:
    whole, other = worker_of(first, lstm=4), worker_of(then, lstm=4, seed=9)
    collected(whole, 2)
    other.load_state_dict(deepcopy(whole.state_dict()))
    assert collected(other, 3) == collected(whole, 3)
    assert _plain(other.state_dict()) == _plain(whole.state_dict())
    whole.close()
    other.close()


def _plain(state: Any) -> Any:
    if isinstance(state, dict):
        return {key: _plain(part) for key, part in state.items()}
    if isinstance(state, list | tuple):
        return [_plain(part) for part in state]
    return state.tolist() if hasattr(state, "tolist") else state


@pytest.mark.parametrize("sampler", WAYS)
def test_rounding_that_depends_on_the_batch_is_said(
    sampler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounding, "parts_agree", lambda *_: False)  # as on some processors
    with pytest.warns(UserWarning, match="agree with those of a serial sampler up to rounding"):
        worker_of(sampler).close()


@pytest.mark.parametrize("sampler", WAYS)
def test_batches_of_any_size_are_laid_over_processes_alike(sampler: str) -> None:
    whole, other = (worker_of(kind, env={"num_envs": 6}) for kind in ("serial", sampler))
    assert collected(other, 2) == collected(whole, 2)
    whole.close()
    other.close()
