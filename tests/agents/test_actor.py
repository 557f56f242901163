"""The acting half of an agent: alone, for part of a batch, and in another process."""

from __future__ import annotations

import pickle
from itertools import pairwise
from typing import Any

import pytest
import torch
from test_probes import config_of

from operant.agents.advantages import values
from operant.core import tree
from operant.core.experience import HiddenState
from operant.core.protocols import Rows
from operant.session.build import build
from operant.session.try_out import try_out

NAMES = ("a2c", "ppo", "acer", "dqn", "rainbow", "ddpg", "sac")


def worker_of(name: str, lstm: int = 0) -> Any:
    """A worker whose agent is past acting at random."""
    return build(try_out(config_of(name, "MatchAction", lstm=lstm)))


def example(worker: Any) -> tuple[Any, HiddenState]:
    """What eight environments show, and the state that their actions start from."""
    chunk = worker.explorer.update()
    state = HiddenState(tree.index(dict(chunk.hidden_state), -1))
    return tree.map(torch.clone, tree.index(chunk.observation, -1)), state


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bounds", [(0, 4, 8), (0, 1, 3, 8)])
def test_parts_of_a_batch_act_as_the_whole(name: str, bounds: tuple[int, ...]) -> None:
    worker = worker_of(name, lstm=4)
    observation, state = example(worker)
    sent = pickle.dumps(worker.agent.actor)
    whole = [worker.agent.act(observation, state)[0] for _ in range(5)]
    for start, stop in pairwise(bounds):
        actor = pickle.loads(sent)
        actor.rows = Rows(start, stop, 8)
        for expected in whole:
            part = tree.index((observation, state), slice(start, stop))
            action, memo = actor.act(*part)
            assert action["action"].tolist() == expected["action"][start:stop].tolist()
            assert all(len(x) == stop - start for x in memo.hidden_state.values())
        assert actor.acted == worker.agent.actor.acted


def test_an_actor_goes_on_where_its_state_was_taken() -> None:
    worker = worker_of("ppo")
    observation, state = example(worker)
    saved = pickle.loads(pickle.dumps(worker.agent.actor.state_dict()))
    first = [worker.agent.act(observation, state)[0]["action"].tolist() for _ in range(4)]
    worker.agent.actor.load_state_dict(saved)
    assert [worker.agent.act(observation, state)[0]["action"].tolist() for _ in range(4)] == first


@pytest.mark.parametrize("lstm", [0, 4])
def test_values_remembered_while_acting_are_those_of_the_network(lstm: int) -> None:
    worker = worker_of("ppo", lstm)
    for _ in range(3):
        chunk = worker.explorer.update()
    assert chunk.first[1:].any()
    remembered = values(worker.network, chunk)
    memo = {name: x for name, x in chunk.memo.items() if name != "value"}
    again = values(worker.network, chunk._replace(memo=memo))
    for one, other in zip(remembered, again, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
