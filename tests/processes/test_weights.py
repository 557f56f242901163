"""Weights in shared memory: every place that an actor keeps one sees what is published."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from fragile import agent
from torch import Tensor, nn

from operant.processes.weights import Form, pack, publish, unpack
from operant.processes.worker import Carver


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
    shared = [form.lay(np.zeros) for form in packed.forms]
    other: Any = unpack(packed.data, packed.forms, shared)
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
    carve = Carver(bytearray(4096))
    found = Form.of(x).lay(carve)
    publish([x], [found])
    assert found.equal(x)
    assert found.dtype == x.dtype
    if x.is_contiguous() or x.dim() == 4:
        assert found.stride() == x.stride()


def test_an_actor_arrives_with_its_random_numbers_and_without_its_weights() -> None:
    actor = agent().actor
    packed = pack(actor)
    size = sum(x.nbytes for x in packed.weights)
    other = unpack(packed.data, packed.forms, [x.detach().clone() for x in packed.weights])
    assert size == 4 * (4 * 4 + 4 + 4 * 3 + 3 + 4 + 1)  # body, three actions and a value
    assert len(packed.data) < 20_000
    draw = [torch.rand(3, generator=one.generator).tolist() for one in (actor, other)]
    assert draw[0] == draw[1]
