"""Several networks side by side."""

import pytest
import torch

from operant.core.errors import UsageError
from operant.networks.modular import ModularNetwork
from operant.networks.recurrent import LSTM
from operant.networks.split import SplitNetwork
from operant.networks.submodule import Identity1D

B = 4
OWNERS = {"policy": "actor", "value": "critic"}


def tower(output: str) -> ModularNetwork:
    return ModularNetwork({"x": Identity1D((3,))}, LSTM((3,), 5), {output: (2,)})


def split() -> SplitNetwork:
    torch.manual_seed(0)
    return SplitNetwork({tower_: tower(output) for output, tower_ in OWNERS.items()}, OWNERS)


def test_each_tower_gives_what_it_would_alone() -> None:
    net = split()
    x = {"x": torch.randn(B, 3)}
    found, _ = net(x, net.initial_state(B))
    for output, owner in OWNERS.items():
        alone = net.networks[owner]
        assert isinstance(alone, ModularNetwork)
        assert torch.equal(found[output], alone(x, alone.initial_state(B))[0][output])


def test_state_is_named_by_network() -> None:
    net = split()
    names = ["actor.body.h", "actor.body.c", "critic.body.h", "critic.body.c"]
    state = net.initial_state(B)
    _, carried = net({"x": torch.randn(B, 3)}, state)
    assert net.recurrent
    assert list(state) == list(carried) == names
    assert all(carried[name].any() for name in names)


def test_networks_that_are_not_asked_do_not_run() -> None:
    net = split()
    _, state = net({"x": torch.randn(B, 3)}, net.initial_state(B))
    found, carried = net({"x": torch.randn(B, 3)}, state, None, ("value",))
    assert list(found) == ["value"]
    assert torch.equal(carried["actor.body.h"], state["actor.body.h"])
    assert not torch.equal(carried["critic.body.h"], state["critic.body.h"])


def test_a_loss_on_one_output_leaves_the_other_tower_alone() -> None:
    net = split()
    net({"x": torch.randn(B, 3)}, net.initial_state(B))[0]["value"].sum().backward()
    touched = {name.split(".")[1] for name, p in net.named_parameters() if p.grad is not None}
    assert touched == {"critic"}


def test_an_output_of_an_unknown_network_is_refused() -> None:
    with pytest.raises(UsageError, match="'value': network 'critik' is unknown; did you mean"):
        SplitNetwork({"actor": tower("policy"), "critic": tower("value")}, {"value": "critik"})
