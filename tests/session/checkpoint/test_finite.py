"""Weights that are not finite never take the place of those that were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from operant.core.errors import CheckpointError
from operant.session.checkpoint.checkpoint import listing, newest, save
from operant.session.checkpoint.finite import not_finite


def agent(weight: float, remembered: float = 0.0) -> dict[str, Any]:
    return {
        "network": {"w": torch.tensor([1.0, weight])},
        "optimizer": [{"count": 3, "moment": torch.ones(2)}],
        "memory": {"reward": torch.tensor([remembered])},
    }


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_not_finite_is_named_and_memories_are_let_be(value: float) -> None:
    assert not_finite(agent(value)) == ["network.w"]
    assert not_finite(agent(1.0, remembered=value)) == []


def test_the_newest_finite_checkpoint_is_kept_and_gone_on_from(tmp_path: Path) -> None:
    save(tmp_path, 1, {"step": 1}, keep=2)
    for step in range(2, 7):
        save(tmp_path, step, {"step": step}, keep=2, broken=["network.w"])
    names = [path.name for path in listing(tmp_path)]
    assert names == ["ckpt-000000000001", "ckpt-000000000005", "ckpt-000000000006"]
    told: list[str] = []
    assert newest(tmp_path, told.append).state == {"step": 1}
    assert len(told) == 2
    assert "network.w hold NaN or infinity" in told[0]


def test_where_no_checkpoint_is_finite_that_is_an_error(tmp_path: Path) -> None:
    save(tmp_path, 1, {}, broken=["network.w"])
    with pytest.raises(CheckpointError, match="none of its checkpoints is"):
        newest(tmp_path)
