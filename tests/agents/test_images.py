"""Learning from images: as torch's own tools would, and in bfloat16 nearly so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete

from operant.agents import AGENTS
from operant.agents.optimize import total
from operant.core.experience import Experience
from operant.core.spaces import Spaces
from operant.networks.build import NetworkConfig, Precision, build_network, precision_of

SPACES = Spaces({"observation": Box(0, 255, (4, 44, 44), np.uint8)}, {"action": Discrete(4)})
T, B = 3, 4


def agent_of(name: str, precision: Precision) -> Any:
    cls, config = AGENTS[name]

    def make(inputs: Any, outputs: Any, late: Any = None) -> Any:
        generator = torch.Generator().manual_seed(7)
        return build_network(NetworkConfig(precision=precision), inputs, outputs, generator, late)

    return cls.create(make, SPACES, config(), seed=1)


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
    batch = agent.prepare(chunk()) if hasattr(agent, "prepare") else chunk()
    loss = total(agent.compute_loss(batch)[0])
    loss.backward()
    found = [p.grad.flatten() for p in agent.network.parameters() if p.grad is not None]
    return float(loss.detach()), torch.cat(found)


@pytest.mark.parametrize("name", ["a2c", "ppo", "dqn"])
def test_an_update_moves_the_weights_as_torchs_own_optimizer_would(name: str) -> None:
    ours, theirs = (agent_of(name, "fp32") for _ in range(2))
    adam = torch.optim.Adam(
        theirs.network.parameters(), ours.optimizer.lr(0), eps=ours.optimizer.eps
    )
    if name == "dqn":
        for agent in (ours, theirs):
            agent.memory.store(chunk())
        batch = theirs.memory.sample(theirs.config.batch_size, 1).experience
        ours.learn()
    else:
        batch = theirs.prepare(chunk())
        ours.learn(ours.prepare(chunk()))
    for _ in range(getattr(ours.config, "epochs", 1)):
        adam.zero_grad()
        total(theirs.compute_loss(batch)[0]).backward()
        torch.nn.utils.clip_grad_norm_(theirs.network.parameters(), ours.config.max_grad_norm)
        adam.step()
    for one, other in zip(ours.network.parameters(), theirs.network.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=2e-5)


@pytest.mark.parametrize("name", ["a2c", "ppo", "dqn"])
def test_losses_and_gradients_in_bf16_are_near_those_in_fp32(name: str) -> None:
    loss, gradient = loss_and_gradient(name, "fp32")
    rough, slope = loss_and_gradient(name, "bf16")
    assert rough == pytest.approx(loss, rel=0.02, abs=2e-3)
    assert rough != loss
    assert float((slope - gradient).norm() / gradient.norm()) < 0.05


def test_weights_outputs_and_gradients_stay_in_fp32() -> None:
    agent = agent_of("ppo", "bf16")
    assert agent.network.bf16
    loss_of = agent.compute_loss(agent.prepare(chunk()))[0]
    total(loss_of).backward()
    dtypes = {p.dtype for p in agent.network.parameters()}
    dtypes |= {p.grad.dtype for p in agent.network.parameters() if p.grad is not None}
    assert dtypes | {x.dtype for x in loss_of.values()} == {torch.float32}


@pytest.mark.parametrize("flag", ["avx512_bf16", "amx_bf16"])
def test_auto_is_bf16_only_for_images_on_processors_that_have_it(
    flag: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    auto = NetworkConfig()
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {flag: True})
    assert [precision_of(auto, images) for images in (True, False)] == ["bf16", "fp32"]
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {flag: False})
    assert precision_of(auto, images=True) == "fp32"
    assert precision_of(NetworkConfig(precision="bf16"), images=False) == "bf16"
