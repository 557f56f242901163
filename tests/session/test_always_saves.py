"""Runs save their weights whatever their environments are made of."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces as gs
from running import COMMON, call, only_run, trace, train

from operant.session.checkpoint.checkpoint import newest

PPO = "train ppo --env.num-envs 2 --agent.length 16 --agent.minibatch 16 --steps 128"


class Sockets(gymnasium.Env[Any, Any]):
    """Three steps an episode; holds a file and a socket."""

    observation_space, action_space = gs.Box(0, 9, (1,), np.float32), gs.Discrete(2)

    def __init__(self, **kwargs: Any) -> None:
        self.count = 0
        self.file, self.line = open(os.devnull), socket.socket()  # noqa: SIM115  # as some do

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.count = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.count += 1
        return np.full(1, self.count, np.float32), 1.0, self.count == 3, False, {}

    def close(self) -> None:
        self.file.close()
        self.line.close()


gymnasium.register("Sockets-v0", Sockets, max_episode_steps=5)


@pytest.mark.parametrize("env_id", ["FrozenLake-v1", "Taxi-v4"])
def test_toy_text_is_trained_saved_and_evaluated(env_id: str, tmp_path: Path) -> None:
    result = call(f"{PPO} --env.id {env_id} {COMMON}", tmp_path)
    assert (result.code, result.err) == (0, "")
    saved = newest(only_run(tmp_path) / "checkpoints")
    assert saved.step == 128
    assert saved.manifest["exact"]
    assert call(["eval", str(only_run(tmp_path)), "--episodes", "2"]).code == 0


def test_toy_text_is_resumed_bit_for_bit(tmp_path: Path) -> None:
    whole = train(f"{PPO} --env.id FrozenLake-v1", tmp_path / "whole")
    run = train(f"{PPO} --env.id FrozenLake-v1", tmp_path / "cut")
    (run / "done.json").unlink()
    for path in (run / "checkpoints").iterdir():
        if path.name > "ckpt-000000000000":
            path.rename(tmp_path / path.name)
    assert call(["resume", str(run), "--quiet"]).code == 0
    assert trace(run) == trace(whole)


@pytest.mark.parametrize("sampler", ["serial", "alternating"])
def test_what_cannot_be_saved_is_named_once_before_training(sampler: str, tmp_path: Path) -> None:
    line = f"{PPO} --env.id Sockets-v0"
    result = call(f"{line} --env.manager simple --sampler {sampler} {COMMON}", tmp_path)
    assert result.code == 0
    (said,) = result.err.splitlines()
    assert "'Sockets-v0': file (TextIOWrapper), line (socket) cannot be saved, so" in said
    manifest = newest(only_run(tmp_path) / "checkpoints").manifest
    assert manifest["step"] == 128
    assert not manifest["exact"]
    assert manifest["reasons"][1] == "file (TextIOWrapper), line (socket) cannot be saved"


def test_a_run_that_is_not_exact_goes_on_from_its_weights(tmp_path: Path) -> None:
    run = train(f"{PPO} --env.id Sockets-v0", tmp_path)
    (run / "done.json").unlink()
    (run / "config.yaml").write_text((run / "config.yaml").read_text().replace("128", "256"))
    result = call(["resume", str(run), "--quiet"])
    assert result.code == 0, result.err
    assert newest(run / "checkpoints").step >= 256
