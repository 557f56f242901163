"""Each agent has network defaults that fit it and what it sees; a recipe only refines them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from operant.networks.split import SplitNetwork
from operant.session.compose import compose
from operant.session.try_out import try_out


def agent_of(name: str, env: str, **network: Any) -> Any:
    tree = {"env": {"id": env}, "device": "cpu", "network": {"precision": "fp32", **network}}
    return try_out(compose(name, tree, recipe="none")[0]).agent


@pytest.mark.parametrize("name", ["a2c", "ppo"])
@pytest.mark.parametrize(("env", "apart"), [("CartPole-v1", True), ("MinAtar/Breakout-v1", False)])
def test_policy_and_value_are_apart_for_vectors_and_share_what_reads_images(
    name: str, env: str, apart: bool
) -> None:
    assert isinstance(agent_of(name, env).network, SplitNetwork) is apart


def test_separate_networks_can_be_asked_for_and_refused() -> None:
    assert not isinstance(agent_of("ppo", "CartPole-v1", separate=False).network, SplitNetwork)
    assert isinstance(agent_of("ppo", "MinAtar/Breakout-v1", separate=True).network, SplitNetwork)


@pytest.mark.parametrize(
    ("name", "env", "sizes", "activation"),
    [
        ("ppo", "CartPole-v1", (64, 64), "tanh"),
        ("dqn", "CartPole-v1", (64, 64), "relu"),
        ("td3", "Pendulum-v1", (256, 256), "relu"),
        ("sac", "Pendulum-v1", (256, 256), "relu"),
    ],
)
def test_layers_are_those_that_peers_use(
    name: str, env: str, sizes: tuple[int, ...], activation: str
) -> None:
    config = compose(name, {"env": {"id": env}}, recipe="none")[0]
    assert (config.network.hidden, config.network.activation) == (sizes, activation)


@pytest.mark.parametrize("name", ["a2c", "ppo"])
def test_the_standard_deviation_of_a_continuous_policy_does_not_depend_on_the_observation(
    name: str,
) -> None:
    agent = agent_of(name, "Pendulum-v1")
    seen = {"observation": torch.randn(6, 3)}
    out, _ = agent.network(seen, agent.initial_state(6))
    assert out["log_std.action"].tolist() == [[0.0]] * 6
    assert out["policy.action"].std() > 0


def test_a_part_of_the_network_that_a_user_sets_leaves_the_agents_other_defaults() -> None:
    config = compose("sac", {"env": {"id": "Pendulum-v1"}, "network": {"hidden": [32]}})[0]
    assert (config.network.hidden, config.network.activation) == ((32,), "relu")
