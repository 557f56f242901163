"""Whether a network rounds parts of a batch as it does the whole is found out from the start."""

from __future__ import annotations

from typing import Self

import pytest
import torch
from torch import Tensor

from operant.core import tree
from operant.core.experience import Arrays, Decision, HiddenState, Memo, Tensors
from operant.core.protocols import Rows
from operant.memory.rollout import RolloutCache
from operant.samplers.rounding import parts_agree

HALVES = [(0, 4), (4, 8)]


class Coarse:
    """Acts by the mean of what it sees, to three digits where `coarse` and given a part."""

    def __init__(self, coarse: bool = True) -> None:
        self.coarse = coarse
        self.rows: Rows | None = None
        self.seen: Tensors = {}

    def act(
        self, observation: Tensors, hidden_state: HiddenState | None = None, explore: bool = True
    ) -> Decision:
        self.seen = observation
        mean = next(iter(observation.values())).float().flatten(1).mean(1)
        short = self.coarse and self.rows is not None
        return {"action": mean.half().float() if short else mean}, Memo({}, HiddenState())

    def carried(self) -> Arrays:
        return {}

    def carry_on(self, carried: Arrays) -> None:
        pass

    state_dict, load_state_dict = carried, carry_on

    def portable(self) -> Self:
        return self


def shown(actor: Coarse, *observations: Tensor) -> RolloutCache:
    """A cache that has just begun with these."""
    cache, named = RolloutCache(1), {str(i): x for i, x in enumerate(observations)}
    cache.start(tree.numpy(named), *actor.act(named))
    return cache


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_rounding_is_noticed_where_every_first_observation_is_the_same(dtype: torch.dtype) -> None:
    blank = torch.zeros(8, 2, 10, 10, dtype=dtype)
    for coarse in (True, False):
        actor = Coarse(coarse)
        assert parts_agree(actor, shown(actor, blank), HALVES) is not coarse


def test_bytes_stay_in_the_range_that_was_seen_and_other_integers_stay_the_same() -> None:
    image, number = torch.full((8, 50), 3, dtype=torch.uint8), torch.arange(8)[:, None]
    actor = Coarse(coarse=False)
    assert parts_agree(actor, shown(actor, image, number), [(0, 8)])
    pixels, numbers = actor.seen.values()
    assert pixels.unique().tolist() == [0, 1, 2, 3]
    assert numbers.flatten().sort().values.tolist() == list(range(8))
