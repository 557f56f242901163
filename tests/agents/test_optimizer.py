"""Gradient steps, target networks, averages and what is due."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import torch
from gymnasium.spaces import Discrete
from torch import nn
from worked import entries, policy_table, table

from operant.agents.optimizer import GradientStep, Hooks, Optimizer, averaged, total
from operant.agents.ppo import PPO, PPOConfig
from operant.agents.target import Target
from operant.core.schedule import Schedule
from operant.core.spaces import Space
from operant.memory.replay_settings import ReplayConfig
from operant.memory.rollout import RolloutCache
from operant.networks.normalize import RunningStatistics


def descend(optimizer: Optimizer, loss: torch.Tensor, steps: int) -> torch.Tensor:
    """Follow the gradient of `loss`; its norm."""
    return GradientStep("loss", lambda: ({"loss": loss}, {}), optimizer)(steps)["grad_norm"]


def slide(optimizer: Optimizer, parameter: nn.Parameter, steps: int = 0) -> float:
    """One step along a slope of (3, 4); the norm it reports."""
    return descend(optimizer, (parameter * torch.tensor([3.0, 4.0])).sum(), steps).item()


def test_a_step_goes_down_the_gradient_by_the_learning_rate() -> None:
    parameter = nn.Parameter(torch.tensor([1.0, 1.0]))
    norm = slide(Optimizer([parameter], Schedule(0.1)), parameter)
    assert norm == pytest.approx(5.0)
    assert parameter.tolist() == pytest.approx([0.9, 0.9])  # Adam's first step has this length


def test_gradients_of_an_earlier_loss_are_forgotten() -> None:
    parameter = nn.Parameter(torch.tensor([1.0, 1.0]))
    optimizer = Optimizer([parameter], Schedule(0.1))
    parameter.grad = torch.tensor([-1e6, -1e6])
    assert slide(optimizer, parameter) == pytest.approx(5.0)
    assert slide(optimizer, parameter) == pytest.approx(5.0)


@pytest.mark.parametrize(
    ("bound", "kept"), [(0.0, [3.0, 4.0]), (1.0, [0.6, 0.8]), (9.0, [3.0, 4.0])]
)
def test_a_long_gradient_is_cut_and_its_true_norm_reported(bound: float, kept: list[float]) -> None:
    parameter = nn.Parameter(torch.tensor([1.0, 1.0]))
    norm = slide(Optimizer([parameter], Schedule(0.1), bound), parameter)
    assert norm == pytest.approx(5.0)
    assert parameter.grad is not None
    assert parameter.grad.tolist() == pytest.approx(kept, rel=1e-4)


def test_the_learning_rate_is_that_of_the_steps_so_far() -> None:
    parameter = nn.Parameter(torch.tensor([1.0, 1.0]))
    optimizer = Optimizer([parameter], Schedule(0.4, 0.0, 100))
    slide(optimizer, parameter, steps=75)
    assert parameter.tolist() == pytest.approx([0.9, 0.9])
    slide(optimizer, parameter, steps=100)
    assert parameter.tolist() == pytest.approx([0.9, 0.9])


def test_a_restored_optimizer_keeps_its_momentum() -> None:
    one, two = (nn.Parameter(torch.tensor([1.0, 1.0])) for _ in range(2))
    first, second = (Optimizer([p], Schedule(0.1)) for p in (one, two))
    slide(first, one)
    two.data.copy_(one)
    second.load_state_dict(deepcopy(first.state_dict()))
    for optimizer, parameter in ((first, one), (second, two)):
        descend(optimizer, (parameter * torch.tensor([-1.0, 2.0])).sum(), 0)
    assert one.tolist() == two.tolist()


@pytest.mark.parametrize(("tau", "expected"), [(0.0, 2.0), (0.25, 4.0), (1.0, 10.0)])
def test_a_target_network_moves_by_its_share_and_its_source_not_at_all(
    tau: float, expected: float
) -> None:
    source = table(value=[[10.0]])
    target = Target(source)
    target.load_state_dict(table(value=[[2.0]]).state_dict())
    target.polyak_update(tau)
    assert entries(target.network, "value").item() == expected
    assert entries(source, "value").item() == 10.0


def test_a_target_network_begins_as_a_copy_that_takes_no_gradient() -> None:
    source = table(value=[[10.0]])
    target = Target(source)
    entries(source, "value").data.fill_(3.0)
    assert entries(target.network, "value").item() == 10.0
    assert not entries(target.network, "value").requires_grad


def test_a_target_network_follows_weights_that_were_loaded() -> None:
    source = table(value=[[10.0]])
    target = Target(source)
    source.load_state_dict(table(value=[[50.0]]).state_dict())
    target.polyak_update(0.5)
    assert entries(target.network, "value").item() == 30.0


def test_a_target_network_takes_over_running_statistics() -> None:
    source = table(value=[[10.0]])
    statistics = RunningStatistics((1,))
    source.add_module("statistics", statistics)
    target = Target(source)
    statistics.update(torch.tensor([[3.0], [5.0]]))
    target.polyak_update(0.1)
    buffers = dict(target.network.named_buffers())  # type: ignore[attr-defined]  # a module
    assert buffers["statistics.mean"].item() == 4.0
    assert buffers["statistics.count"].item() == 2


def test_the_total_is_the_sum_with_all_its_gradients() -> None:
    x = torch.tensor(3.0, requires_grad=True)
    both = total({"one": 2 * x, "two": 5 * x})
    both.backward()
    assert (both.item(), x.grad) == (21.0, torch.tensor(7.0))


def test_metrics_are_averaged_by_name() -> None:
    parts = [{"a": torch.tensor(1.0), "b": torch.tensor(4.0, requires_grad=True)}]
    parts.append({"b": torch.tensor(8.0), "a": torch.tensor(2.0)})
    assert averaged(parts) == {"a": 1.5, "b": 6.0}
    assert averaged([]) == {}


def test_a_metric_that_only_some_steps_have_is_averaged_over_those() -> None:
    parts = [{"a": torch.tensor(1.0)}, {"a": torch.tensor(2.0), "b": torch.tensor(7.0)}]
    assert averaged(parts) == {"a": 1.5, "b": 7.0}


@pytest.mark.parametrize(
    ("stored", "done", "due"),
    [
        (0, 0, 0),
        (100, 0, 0),  # learning starts here, and nothing has piled up
        (103, 0, 0),
        (104, 0, 1),
        (120, 1, 4),
        (120, 5, 0),
        (120, 9, 0),  # never below zero
    ],
)
def test_updates_are_due_for_steps_beyond_those_waited_for(
    stored: int, done: int, due: int
) -> None:
    config = ReplayConfig(learning_starts=100, updates_per_step=0.25)
    assert config.updates_due(stored, done) == due


def test_several_updates_a_step_are_all_due() -> None:
    config = ReplayConfig(learning_starts=10, updates_per_step=2.5)
    assert config.updates_due(13, 0) == 7


def network_and_loss(seed: int) -> tuple[nn.Sequential, torch.Tensor]:
    """Two layers and what they are to learn; the same for the same seed."""
    generator = torch.Generator().manual_seed(seed)
    network = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3))
    for parameter in network.parameters():
        parameter.data.copy_(torch.randn(parameter.shape, generator=generator))
    return network, torch.randn(11, 5, generator=generator)


def test_steps_are_bit_for_bit_those_of_torchs_adam() -> None:
    (ours, x), (theirs, _) = network_and_loss(3), network_and_loss(3)
    optimizer = Optimizer(ours.parameters(), Schedule(0.01, 0.001, 20), 1.0, eps=1e-5)
    adam = torch.optim.Adam(theirs.parameters(), eps=1e-5, fused=True)
    for step in range(20):
        descend(optimizer, ours(x).square().mean(), step)
        adam.zero_grad()
        theirs(x).square().mean().backward()
        nn.utils.clip_grad_norm_(theirs.parameters(), 1.0)
        adam.param_groups[0]["lr"] = optimizer.lr(step)
        adam.step()
    pairs = list(zip(ours.parameters(), theirs.parameters(), strict=True))
    assert all(torch.equal(one, other) for one, other in pairs)


def images_and_network(seed: int) -> tuple[nn.Sequential, torch.Tensor]:
    """Convolutions, whose weights' gradients come with their channels last, as the images do."""
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 5, 2), nn.Flatten())
    generator = torch.Generator().manual_seed(seed)
    for parameter in network.parameters():
        parameter.data.copy_(torch.randn(parameter.shape, generator=generator))
    images = torch.randn(6, 3, 7, 7, generator=generator)
    return network, images.contiguous(memory_format=torch.channels_last)


def test_gradients_that_lie_otherwise_than_their_parameters_are_followed_as_torchs_adam_does() -> (
    None
):
    (ours, x), (theirs, _) = images_and_network(4), images_and_network(4)
    weights = list(ours.parameters())
    raw = torch.autograd.grad(ours(x).square().mean(), weights)
    assert [g.stride() for g in raw] != [w.stride() for w in weights]
    optimizer = Optimizer(ours.parameters(), Schedule(0.01))
    adam = torch.optim.Adam(theirs.parameters(), lr=0.01, fused=True)
    for step in range(5):
        descend(optimizer, ours(x).square().mean(), step)
        adam.zero_grad()
        theirs(x).square().mean().backward()
        adam.step()
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one, other)


def test_a_gradient_that_is_one_number_shown_many_times_is_followed_everywhere() -> None:
    parameter = nn.Parameter(torch.zeros(3, 4))
    descend(Optimizer([parameter], Schedule(0.1)), parameter.sum(), 0)
    assert parameter.flatten().tolist() == pytest.approx([-0.1] * 12)


def test_what_a_loss_does_not_touch_stays_and_does_not_age() -> None:
    touched, apart = (nn.Parameter(torch.tensor([1.0, 1.0])) for _ in range(2))
    optimizer = Optimizer([apart, touched], Schedule(0.1))
    slide(optimizer, touched)
    assert (apart.tolist(), apart.grad) == ([1.0, 1.0], None)
    slide(optimizer, apart)  # its first step, so of this length
    assert apart.tolist() == pytest.approx([0.9, 0.9])


RULES: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "adam": lambda weights: torch.optim.Adam(weights, eps=1e-5, fused=True),
    "adamw": lambda weights: torch.optim.AdamW(weights, eps=1e-5),
    "rmsprop": lambda weights: torch.optim.RMSprop(weights, eps=1e-5),
    "sgd": torch.optim.SGD,
}


@pytest.mark.parametrize("rule", RULES)
def test_an_optimizer_by_name_is_torchs_own(rule: Any) -> None:
    (ours, x), (theirs, _) = network_and_loss(3), network_and_loss(3)
    optimizer = Optimizer(ours.parameters(), Schedule(0.01, 0.001, 20), 1.0, rule, eps=1e-5)
    expected = RULES[rule](theirs.parameters())
    for step in range(20):
        descend(optimizer, ours(x).square().mean(), step)
        expected.zero_grad()
        theirs(x).square().mean().backward()
        nn.utils.clip_grad_norm_(theirs.parameters(), 1.0)
        expected.param_groups[0]["lr"] = optimizer.lr(step)
        expected.step()
    pairs = list(zip(ours.parameters(), theirs.parameters(), strict=True))
    assert all(torch.equal(one, other) for one, other in pairs)


@pytest.mark.parametrize("rule", [*RULES, torch.optim.NAdam])
def test_any_optimizer_goes_on_from_its_state_bit_for_bit(rule: Any) -> None:
    (one, x), (two, _) = network_and_loss(3), network_and_loss(3)
    first, second = (Optimizer(n.parameters(), Schedule(0.01), 1.0, rule) for n in (one, two))
    for step in range(3):
        descend(first, one(x).square().mean(), step)
    two.load_state_dict(one.state_dict())
    second.load_state_dict(deepcopy(first.state_dict()))
    for network, optimizer in ((one, first), (two, second)):
        descend(optimizer, network(x).square().mean(), 3)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))


def halves(gradients: Any, metrics: Any) -> Any:
    """As if another rank had had no gradient at all."""
    return [x / 2 for x in gradients], {name: x / 2 for name, x in metrics.items()}


@pytest.mark.parametrize("compile", [False, True])
def test_gradients_are_reduced_before_they_are_clipped(compile: bool) -> None:
    parameter = nn.Parameter(torch.tensor([1.0, 1.0]))
    optimizer = Optimizer([parameter], Schedule(0.1), 2.0, "sgd")
    slope = torch.tensor([3.0, 4.0])
    step = GradientStep("loss", lambda: ({"a": (parameter * slope).sum()}, {}), optimizer)
    optimizer.reduce = halves
    if compile:
        step.compile()
    metrics = step(0)
    # The mean gradient is (1.5, 2) of norm 2.5; clipped before, it would be (0.6, 0.8) · 2 / 2.
    assert {name: x.item() for name, x in metrics.items()} == {"loss": 3.5, "grad_norm": 2.5}
    assert parameter.tolist() == pytest.approx([1 - 0.1 * 1.2, 1 - 0.1 * 1.6])


def test_the_total_loss_is_a_metric_and_no_metric_holds_a_graph() -> None:
    parameter = nn.Parameter(torch.tensor([1.0, 1.0]))

    def loss(scale: float) -> Any:
        losses = {"a": scale * parameter.sum(), "b": parameter[0]}
        return losses, {"mean": parameter.mean()}

    metrics = GradientStep("actor_loss", loss, Optimizer([parameter], Schedule(0.1), None))(0, 2.0)
    assert {name: x.item() for name, x in metrics.items()} == {"mean": 1.0, "actor_loss": 5.0}
    assert not any(x.requires_grad for x in metrics.values())


def test_an_agents_optimizer_is_configured_or_given_in_python() -> None:
    network = policy_table(value=[[0.0]], action=[[0.0, 0.0]])
    spaces: dict[str, Space] = {"action": Discrete(2)}
    memory = RolloutCache(2)
    plain = PPO(network, spaces, memory, PPOConfig(optimizer="rmsprop"), 1)
    hooks = Hooks(optimizers={"all": torch.optim.NAdam})
    given = PPO(network, spaces, memory, PPOConfig(), 1, hooks)
    rules: list[Any] = [agent.optimizer.rule for agent in (plain, given)]
    kinds = [type(rule.optimizer) for rule in rules]
    assert kinds == [torch.optim.RMSprop, torch.optim.NAdam]
