"""Recipes of Atari: found with the module in front, with lives as in the papers."""

from __future__ import annotations

import pytest

from operant.recipes.atari_games import RECIPES
from operant.session.build import build_evaluation
from operant.session.compose import compose
from operant.session.recipe import Recipe

FLAGS = ["--env.id", "ale_py:ALE/Breakout-v5", "--env.manager", "simple"]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_a_recipe_also_fits_a_game_named_with_its_module(recipe: Recipe) -> None:
    assert recipe.fits("ale_py:ALE/Pong-v5")
    assert not recipe.fits("ale_py:MinAtar/Pong-v1")


def test_lives_end_episodes_in_training_and_never_in_evaluation() -> None:
    config = compose("ppo", {}, FLAGS, recipes=RECIPES)[0]
    assert config.env.episodic_life
    evaluation = build_evaluation(config, 1)
    assert evaluation.make_manager.args[0].episodic_life is False  # type: ignore[attr-defined]  # a partial
