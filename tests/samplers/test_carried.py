"""What acting carries on besides weights travels to workers and checkpoints, whatever it is."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from kinds import numbers
from noisy import sampler_of

KINDS = pytest.mark.parametrize("kind", ["serial", "parallel", "alternating", "async"])
WORKERS = pytest.mark.parametrize("kind", ["parallel", "async"])


def collected(sampler: Any, count: int) -> list[Any]:
    """The next chunks."""
    return [numbers(sampler.obtain_samples(i)[0]) for i in range(count)]


def saved(sampler: Any) -> tuple[Any, Any]:
    return deepcopy((sampler.state_dict(), sampler.agent.state_dict()))


def load(sampler: Any, states: tuple[Any, Any]) -> None:
    sampler.load_state_dict(states[0])
    sampler.agent.load_state_dict(states[1])


@KINDS
def test_noise_that_remembers_is_the_same_under_every_sampler(kind: str) -> None:
    other = sampler_of(kind)
    expected, found = collected(sampler_of("serial"), 4), collected(other, 4)
    other.close()
    assert found == expected
    noise = np.array([chunk["memo.noise"][1] for chunk in found]).reshape(-1, 4)
    drawn = noise[1:] - 0.9 * noise[:-1]  # across the ends of chunks too
    assert drawn.std() == pytest.approx(1.0, abs=0.25)


@KINDS
def test_a_resumed_sampler_goes_on_with_what_acting_carried(kind: str) -> None:
    whole, other = sampler_of(kind), sampler_of(kind, seed=99)
    collected(whole, 2)
    load(other, saved(whole))
    expected = collected(whole, 3)
    assert collected(other, 3) == expected == collected(sampler_of("serial"), 5)[2:]
    whole.close()
    other.close()


@WORKERS
def test_an_agent_on_another_device_is_given_all_but_the_generator(kind: str) -> None:
    here, there = sampler_of(kind), sampler_of(kind, remote=True)
    assert collected(there, 3) == collected(here, 3)
    ours, theirs = there.agent.actor.carried(), here.agent.actor.carried()
    assert ours["noise"].tolist() == theirs["noise"].tolist()
    assert ours["generator"].tolist() != theirs["generator"].tolist()
    here.close()
    there.close()


@WORKERS
def test_the_generator_that_the_agent_does_not_have_is_saved_by_the_sampler(kind: str) -> None:
    whole, other = (sampler_of(kind, seed, remote=True) for seed in (7, 99))
    collected(whole, 2)
    load(other, saved(whole))
    assert collected(other, 3) == collected(whole, 3)
    whole.close()
    other.close()
