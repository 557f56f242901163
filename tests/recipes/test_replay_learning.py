"""What the recipes of ACER and ACERVTrace promise, on three seeds."""

from __future__ import annotations

from pathlib import Path

import pytest

import operant


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("agent", ["acer", "acer-vtrace"])
def test_cartpole_is_solved_within_200k_steps(agent: str, seed: int, tmp_path: Path) -> None:
    run = operant.train(agent, "CartPole-v1", seed=seed, threads=1, runs=tmp_path, quiet=True)
    assert run.config.steps <= 200_000
    assert run.eval()["eval/mean_reward"] >= 475
