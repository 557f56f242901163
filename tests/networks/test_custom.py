"""A module of the user's own under the protocol of a network."""

import pytest
import torch
from torch import Tensor, nn

from operant.core.errors import UsageError
from operant.core.experience import HiddenState
from operant.networks.custom import CustomNetwork

T, B = 6, 4


class Gated(nn.Module):
    """A recurrent module as a user writes it, for one moment."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.policy = nn.GRUCell(3, 5), nn.Linear(5, 2)

    def forward(
        self, observation: dict[str, Tensor], hidden_state: dict[str, Tensor]
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        h = self.cell(observation["x"], hidden_state["h"])
        return {"policy": self.policy(h), "value": h.sum(1)}, {"h": h}


class Plain(nn.Module):
    """A module without memory, which counts how often it is called."""

    calls = 0

    def forward(
        self, observation: dict[str, Tensor], hidden_state: dict[str, Tensor]
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        self.calls += 1
        return {"value": observation["x"].sum(1)}, hidden_state


def gated() -> CustomNetwork:
    torch.manual_seed(0)
    return CustomNetwork(Gated(), {"h": (5,)})


def test_a_sequence_equals_its_steps() -> None:
    net = gated()
    x, first = torch.randn(T, B, 3), torch.rand(T, B) < 0.3
    found, carried = net({"x": x}, net.initial_state(B), first)
    state = net.initial_state(B)
    for t in range(T):
        step, state = net({"x": x[t]}, state.reset(first[t]))
        assert torch.equal(found["policy"][t], step["policy"])
    assert torch.equal(carried["h"], state["h"])


def test_a_moment_may_begin_an_episode() -> None:
    net = gated()
    x, first = torch.randn(B, 3), torch.tensor([True, False, False, True])
    state = HiddenState(h=torch.randn(B, 5))
    found, _ = net({"x": x}, state, first)
    assert torch.equal(found["value"], net({"x": x}, state.reset(first))[0]["value"])


def test_a_sequence_without_memory_is_one_call() -> None:
    module = Plain()
    x = torch.randn(T, B, 3)
    found, state = CustomNetwork(module)({"x": x}, HiddenState(), torch.zeros(T, B).bool())
    torch.testing.assert_close(found["value"], x.sum(2))
    assert (module.calls, state) == (1, {})


def test_only_what_is_asked_for_comes_back() -> None:
    net = gated()
    found, _ = net({"x": torch.randn(B, 3)}, net.initial_state(B), None, ("value",))
    assert list(found) == ["value"]
    with pytest.raises(UsageError, match="'q' is unknown"):
        net({"x": torch.randn(B, 3)}, net.initial_state(B), None, ("q",))


def test_a_state_that_was_not_declared_is_refused() -> None:
    net = CustomNetwork(Gated())
    with pytest.raises(UsageError, match=r"Gated returned the hidden state \['h'\]; expected \[\]"):
        net({"x": torch.randn(B, 3)}, HiddenState(h=torch.zeros(B, 5)))


class Stateless(nn.Module):
    """Takes and gives no hidden state."""

    def forward(self, observation: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"value": observation["x"].sum(1)}


class Bare(nn.Module):
    """Gives a tensor without a name."""

    def forward(self, observation: dict[str, Tensor]) -> Tensor:
        return observation["x"]


def test_a_module_without_memory_need_not_know_of_hidden_states() -> None:
    x = torch.randn(T, B, 3)
    found, state = CustomNetwork(Stateless())({"x": x}, HiddenState(), torch.zeros(T, B).bool())
    torch.testing.assert_close(found["value"], x.sum(2))
    assert state == {}


def test_outputs_have_names() -> None:
    with pytest.raises(UsageError, match="Bare returned a Tensor; expected outputs by name"):
        CustomNetwork(Bare())({"x": torch.randn(B, 3)}, HiddenState())
