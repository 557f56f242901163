"""A user's module: arguments by name, results in order."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from operant.core.errors import UsageError
from operant.core.experience import HiddenState
from operant.frameworks.arguments import NamedResults, bare, call
from operant.networks.custom import CustomNetwork


class Two(nn.Module):
    """Two inputs, three results, one of which is no tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 3)

    def forward(self, pos: Tensor, vel: Tensor, scale: float = 1.0) -> Any:
        return self.layer(torch.cat([pos, vel], -1)) * scale, pos[:, 0], "note"


POS, VEL = torch.ones(4, 1), torch.zeros(4, 1)


def test_arguments_are_matched_by_name() -> None:
    module = Two()
    given = call(module, {"vel": VEL, "other": 1}, {"pos": POS, "scale": 2.0})
    assert torch.equal(given[0], module(POS, VEL, 2.0)[0])
    assert given[2] == "note"


def test_one_result_is_bare_and_several_are_a_tuple() -> None:
    layer = nn.Linear(2, 1)
    assert isinstance(bare(call(layer, {"input": torch.zeros(1, 2)})), Tensor)
    assert len(bare(call(Two(), {"pos": POS, "vel": VEL}))) == 3


def test_an_argument_that_is_missing_is_named() -> None:
    with pytest.raises(UsageError, match=r"Two\.forward needs 'vel'; there is 'pos', 'speed'"):
        call(Two(), {"pos": POS, "speed": VEL})


def test_a_module_of_doubles_is_given_doubles() -> None:
    assert call(Two().double(), {"pos": POS, "vel": VEL})[0].dtype == torch.float64


def test_a_wrapped_module_is_asked_for_its_own_arguments() -> None:
    module = Two()
    given = call(nn.DataParallel(module), {"pos": POS, "vel": VEL})
    assert torch.equal(given[0], module(POS, VEL)[0])


def test_results_get_names_and_missing_ones_are_zeros() -> None:
    network = CustomNetwork(NamedResults(Two(), "q.move", "value", "note", "entropy"))
    out, _ = network({"state.pos": POS, "state.vel": VEL}, HiddenState())
    assert out["q.move"].shape == (4, 3)
    assert out["value"].flatten().tolist() == [1, 1, 1, 1]
    assert out["entropy"].shape == (4, 1)
    assert not out["entropy"].any()


def test_the_first_result_can_be_converted() -> None:
    network = NamedResults(Two(), "q.move", convert=lambda x, _: 0 * x + 7)
    assert network({"state.pos": POS, "state.vel": VEL}, HiddenState())[0]["q.move"].min() == 7
