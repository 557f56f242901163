"""Learning from images: as torch's own tools would, and in bfloat16 nearly so."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch
from agent_parts import create
from gymnasium.spaces import Box, Discrete
from torch.profiler import profile
from worked import prepare

from operant.agents.optimizer import total
from operant.core.experience import Experience
from operant.core.spaces import Spaces
from operant.networks.assemble import NetworkConfig
from operant.networks.image import NatureCNN
from operant.networks.precision import Precision, bf16_failure
from operant.samplers.autocast import cached_autocast

SPACES = Spaces({"observation": Box(0, 255, (4, 44, 44), np.uint8)}, {"action": Discrete(4)})
T, B = 3, 4
needs_bf16 = pytest.mark.skipif(bool(bf16_failure()), reason="bfloat16 products fail here")


def agent_of(name: str, precision: Precision) -> Any:
    return create(name, SPACES, NetworkConfig(precision=precision), {"optimizer": "adam"}, seed=7)


def chunk() -> Experience:
    """Images, actions and rewards as random as they can be."""
    generator = torch.Generator().manual_seed(5)
    shape = (T + 1, B, 4, 44, 44)
    images = torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)
    no, yes = torch.zeros(T, B, dtype=torch.bool), torch.ones(T, B, dtype=torch.bool)
    return Experience(
        observation={"observation": images},
        hidden_state={},
        first=torch.zeros(T + 1, B, dtype=torch.bool),
        action={"action": torch.randint(0, 4, (T, B), generator=generator)},
        memo={"log_prob": torch.full((T, B), -1.386)},
        reward=torch.randn(T, B, generator=generator),
        terminated=no,
        truncated=no,
        valid=yes,
        final_observation={"observation": images[1:]},
        replaced=no,
    )


def loss_and_gradient(name: str, precision: Precision) -> tuple[float, torch.Tensor]:
    agent = agent_of(name, precision)
    batch = chunk() if name == "dqn" else prepare(agent, chunk())
    loss = total(agent.compute_loss(batch)[0])
    loss.backward()
    found = [p.grad.flatten() for p in agent.network.parameters() if p.grad is not None]
    return float(loss.detach()), torch.cat(found)


@pytest.mark.parametrize("name", ["a2c", "ppo", "dqn"])
def test_an_update_moves_the_weights_as_torchs_own_optimizer_would(name: str) -> None:
    ours, theirs = (agent_of(name, "fp32") for _ in range(2))
    adam = torch.optim.Adam(
        theirs.network.parameters(), ours.optimizer.lr(0), eps=ours.optimizer.rule.eps
    )
    if name == "dqn":
        for agent in (ours, theirs):
            agent.memory.store(chunk())
        batch = theirs.memory.sample(theirs.config.batch_size, 1).experience
        drawn = ours.memory.sample(ours.config.batch_size, 1)
        ours.learn_from(drawn, ours.due())
    else:
        batch = prepare(theirs, chunk())
        ours.memory.store(chunk())
        ours.update()
    for _ in range(getattr(ours.config, "epochs", 1)):
        adam.zero_grad()
        total(theirs.compute_loss(batch)[0]).backward()
        torch.nn.utils.clip_grad_norm_(theirs.network.parameters(), ours.config.max_grad_norm)
        adam.step()
    for one, other in zip(ours.network.parameters(), theirs.network.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=2e-5)


@needs_bf16
@pytest.mark.parametrize("name", ["a2c", "ppo", "dqn"])
def test_losses_and_gradients_in_bf16_are_near_those_in_fp32(name: str) -> None:
    loss, gradient = loss_and_gradient(name, "fp32")
    rough, slope = loss_and_gradient(name, "bf16")
    assert rough == pytest.approx(loss, rel=0.02, abs=2e-3)
    assert rough != loss
    assert float((slope - gradient).norm() / gradient.norm()) < 0.05


@needs_bf16
def test_weights_outputs_and_gradients_stay_in_fp32() -> None:
    agent = agent_of("ppo", "bf16")
    assert agent.network.bf16
    loss_of = agent.compute_loss(prepare(agent, chunk()))[0]
    total(loss_of).backward()
    dtypes = {p.dtype for p in agent.network.parameters()}
    dtypes |= {p.grad.dtype for p in agent.network.parameters() if p.grad is not None}
    assert dtypes | {x.dtype for x in loss_of.values()} == {torch.float32}


def casts(agent: Any, times: int, resting: bool) -> int:
    """How often acting so many times makes another precision of the widest weights."""
    widest = list(max(agent.network.parameters(), key=torch.Tensor.numel).shape)
    with profile(record_shapes=True) as seen, cached_autocast() if resting else nullcontext():
        for _ in range(times):
            acted(agent)
    found = seen.key_averages(group_by_input_shape=True)
    return sum(x.count for x in found if (x.key, x.input_shapes[:1]) == ("aten::copy_", [widest]))


def acted(agent: Any) -> torch.Tensor:
    seen = {"observation": chunk().observation["observation"][0]}
    log_prob: torch.Tensor = agent.act(seen, explore=False)[1].tensors["log_prob"]
    return log_prob


@needs_bf16
def test_acting_makes_bf16_of_the_weights_once_while_they_rest() -> None:
    agent = agent_of("ppo", "bf16")
    assert [casts(agent, 3, resting) for resting in (True, False)] == [1, 3]


@needs_bf16
def test_weights_that_changed_while_none_rested_are_seen() -> None:
    agent, other = agent_of("ppo", "bf16"), agent_of("ppo", "bf16")
    with cached_autocast():
        before = acted(agent)
    with torch.no_grad():
        for one in (*agent.network.parameters(), *other.network.parameters()):
            one.add_(0.01)
    with cached_autocast():
        after = acted(agent)
    assert after.equal(acted(other))
    assert not after.equal(before)


@needs_bf16
def test_gradients_reach_the_weights_after_a_rest() -> None:
    agent, other = agent_of("ppo", "bf16"), agent_of("ppo", "bf16")
    with cached_autocast():
        acted(agent)
    for one in (agent, other):
        total(one.compute_loss(prepare(one, chunk()))[0]).backward()
    for ours, theirs in zip(agent.network.parameters(), other.network.parameters(), strict=True):
        assert ours.grad.equal(theirs.grad)


def test_bytes_become_bf16_at_once_and_are_what_they_would_be_by_way_of_fp32() -> None:
    part = NatureCNN((4, 44, 44))
    every = torch.arange(256, dtype=torch.uint8)
    with torch.autocast("cpu", torch.bfloat16):
        low = part.floats(every)
    assert low.dtype is torch.bfloat16
    assert low.equal(part.floats(every).bfloat16())
