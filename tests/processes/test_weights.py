"""Weights in shared memory: every place that an actor keeps one sees what is published."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from operant.envs.env_settings import EnvConfig
from operant.envs.providers.gymnasium import make_env
from operant.networks.assemble import NetworkConfig
from operant.processes.shared_memory import ArrayAllocator
from operant.processes.weights import TensorLayout, pack, publish, unpack
from operant.session.build import build_agent
from operant.session.run_settings import run_config


class Holder(nn.Module):
    """Keeps its weights in a tuple too, which pickling comes to first."""

    def __init__(self) -> None:
        super().__init__()
        self.__dict__ = {"kept": (), **self.__dict__}
        self.layer = nn.Linear(3, 2)
        self.register_buffer("mean", torch.ones(3, dtype=torch.float64))
        self.kept = (self.layer.weight, self.layer.bias)


def test_whatever_holds_a_weight_sees_the_published_one() -> None:
    holder: Any = Holder()
    packed = pack(holder)
    shared = [layout.tensor(np.zeros) for layout in packed.layouts]
    other: Any = unpack(packed.data, packed.layouts, shared)
    with torch.no_grad():
        holder.layer.weight.add_(1.0)
        holder.mean.mul_(3.0)
    publish(packed.weights, shared)
    assert other.kept[0] is other.layer.weight
    assert other.kept[0].equal(holder.layer.weight)
    assert other.mean.equal(holder.mean)
    assert other.layer.weight.data_ptr() in {x.data_ptr() for x in shared}
    assert other.layer.weight.requires_grad  # or autocast would make bf16 of it at every step


@pytest.mark.parametrize(
    "x",
    [
        torch.randn(4, 3, 2, 2).contiguous(memory_format=torch.channels_last),
        torch.randn(3, 5).to(torch.bfloat16),
        torch.randn(5, 3).T,
        torch.zeros(()),
        torch.zeros(0, 4),
    ],
    ids=["channels last", "bf16", "transposed", "number", "empty"],
)
def test_a_weight_keeps_its_type_and_where_it_can_its_layout(x: Tensor) -> None:
    found = TensorLayout.of(x).tensor(ArrayAllocator(bytearray(4096)))
    publish([x], [found])
    assert found.equal(x)
    assert found.dtype == x.dtype
    if x.is_contiguous() or x.dim() == 4:
        assert found.stride() == x.stride()


def test_an_actor_arrives_with_its_random_numbers_and_without_its_weights() -> None:
    config = run_config("a2c")(device="cpu", network=NetworkConfig(hidden=(4,)))
    actor: Any = build_agent(config, make_env(EnvConfig()).spaces).actor
    packed = pack(actor)
    size = sum(x.nbytes for x in packed.weights)
    other: Any = unpack(packed.data, packed.layouts, [x.detach().clone() for x in packed.weights])
    assert size == 4 * (4 * 4 + 4 + 4 * 2 + 2 + 4 + 1)  # body, two actions and a value
    assert len(packed.data) < 20_000
    draw = [torch.rand(3, generator=one.generator).tolist() for one in (actor, other)]
    assert draw[0] == draw[1]
