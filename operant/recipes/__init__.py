"""Tuned settings, one experiment each; `operant train` takes the one that fits."""

from operant.recipes import atari, cartpole, minatar, pendulum
from operant.session.recipe import Recipe

RECIPES: tuple[Recipe, ...] = (
    *cartpole.RECIPES,
    *pendulum.RECIPES,
    *minatar.RECIPES,
    *atari.RECIPES,
)


def recipe_for(algorithm: str, env_id: str) -> Recipe | None:
    """The first recipe for this agent whose pattern fits the environment."""
    return next((r for r in RECIPES if r.algorithm == algorithm and r.fits(env_id)), None)


__all__ = ["RECIPES", "Recipe", "recipe_for"]
