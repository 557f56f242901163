"""Defaults, then a recipe, then a file, then flags: the configuration of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from operant.core.errors import UsageError, suggest
from operant.recipes import RECIPES, Recipe, recipe_for
from operant.session.config import from_tree, parse_flags
from operant.session.run_config import RunConfig, run_config


def compose(
    algorithm: str,
    tree: Mapping[str, Any],
    flags: Sequence[str] = (),
    recipe: str = "auto",
    source: str = "",
    others: Sequence[str] = (),
) -> tuple[RunConfig, Recipe | None]:
    """The configuration, and the recipe it started from.

    `tree` are the settings of the file `source`; `recipe` is a name, `auto` for the one that fits
    agent and environment, or `none`; `others` are flags known elsewhere, for the suggestions.
    """
    algorithm = _algorithm(algorithm, tree, source)
    cls = run_config(algorithm)
    draft, _ = parse_flags(cls, flags, from_tree(cls, tree, source=source), others=others)
    chosen = _recipe(recipe, algorithm, draft.env.id)
    base = from_tree(cls, chosen.settings) if chosen else cls()
    base = from_tree(cls, tree, base, source=source)
    config, rest = parse_flags(cls, flags, base, others=others)
    if rest:
        raise UsageError(f"{rest[0]!r}: expected a flag, such as --env.id {rest[0]}")
    if config.algorithm != algorithm:
        raise UsageError(
            f"--algorithm {config.algorithm}: write `operant train {config.algorithm}`"
        )
    return config, chosen


def _algorithm(named: str, tree: Mapping[str, Any], source: str) -> str:
    written = tree.get("algorithm", named)
    if not named and not written:
        raise UsageError("which agent? expected its name, such as `operant train ppo`")
    if named and written != named:
        raise UsageError(f"{source}: algorithm = {written!r}, and the command names {named!r}")
    return str(written)


def _recipe(name: str, algorithm: str, env_id: str) -> Recipe | None:
    if name == "auto":
        return recipe_for(algorithm, env_id)
    known = {r.name: r for r in RECIPES if r.algorithm == algorithm}
    if name != "none" and name not in known:
        raise UsageError(f"--recipe {name}: no such recipe for {algorithm}{suggest(name, known)}")
    return known.get(name)
