"""Metrics of a run at Weights & Biases, without a network."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

import operant
from operant.callbacks import WeightsAndBiases
from operant.core.errors import UsageError

HERE = importlib.util.find_spec("wandb") is not None
SMALL: dict[str, Any] = {
    "steps": 64,
    "log_every": 32,
    "quiet": True,
    "threads": 1,
    "recipe": "none",
    "env": {"num_envs": 2, "manager": "simple"},
    "eval": {"every": 64, "episodes": 1},
}


@pytest.mark.skipif(HERE, reason="wandb is installed")
def test_without_the_package_the_error_names_the_extra(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"install it with: pip install 'operant\[wandb\]'"):
        operant.train("a2c", "CartPole-v1", runs=tmp_path, callbacks=[WeightsAndBiases()], **SMALL)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not HERE, reason="needs the extra wandb")
def test_every_line_of_the_log_is_written_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    callback = WeightsAndBiases(project="trial")
    run = operant.train("a2c", "CartPole-v1", runs=tmp_path, callbacks=[callback], **SMALL)
    (written,) = run.path.glob("wandb/offline-run-*/run-*.wandb")
    content = written.read_bytes()
    assert b"rollout/ep_rew_mean" in content
    assert b"eval/mean_reward" in content
    assert run.path.name.encode() in content
