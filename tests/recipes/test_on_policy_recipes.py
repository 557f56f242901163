"""What recipes of on-policy agents promise, on three seeds."""

from __future__ import annotations

from pathlib import Path

import pytest

import operant
from operant.recipes import RECIPES

PROMISED = {
    "trpo-cartpole": 475,
    "vtrace-cartpole": 475,
    "trpo-pendulum": -200,
}


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("name", PROMISED)
def test_a_recipe_keeps_its_promise(name: str, seed: int, tmp_path: Path) -> None:
    recipe = next(recipe for recipe in RECIPES if recipe.name == name)
    run = operant.train(
        recipe.algorithm, recipe.own_env, seed=seed, threads=1, runs=tmp_path, quiet=True
    )
    assert run.eval()["eval/mean_reward"] >= PROMISED[name]
