"""Defaults, then a recipe, then a file, then flags: the configuration of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from operant.config import from_tree, parse_flags
from operant.core.errors import UsageError, suggest
from operant.envs.providers.catalog import full_id
from operant.recipes import RECIPES, Recipe, recipe_for
from operant.session.run_settings import RunConfig, run_config, split_algorithm


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
    written, tree = split_algorithm(tree, source)
    algorithm = _algorithm(algorithm, written, flags, source)
    cls = run_config(algorithm)
    draft, _ = parse_flags(cls, flags, from_tree(cls, tree, source=source), others=others)
    env_id = full_id(draft.env.id)
    chosen = _recipe(recipe, algorithm, env_id)
    base = from_tree(cls, chosen.settings) if chosen else cls()
    base = from_tree(cls, tree, base, source=source)
    config, rest = parse_flags(cls, flags, base, others=others)
    if rest:
        raise UsageError(f"{rest[0]!r}: expected a flag, such as --env.id {rest[0]}")
    return replace(config, env=replace(config.env, id=env_id)), chosen


def _algorithm(named: str, written: str, flags: Sequence[str], source: str) -> str:
    if any(flag.split("=")[0] == "--algorithm" for flag in flags):
        raise UsageError("--algorithm: is no flag; name the agent first, as in `operant train ppo`")
    if not named and not written:
        raise UsageError("which agent? expected its name, such as `operant train ppo`")
    if named and written and written != named:
        raise UsageError(f"{source}: algorithm = {written!r}, and the command names {named!r}")
    return named or written


def _recipe(name: str, algorithm: str, env_id: str) -> Recipe | None:
    if name == "auto":
        return recipe_for(algorithm, env_id)
    known = {r.name: r for r in RECIPES if r.algorithm == algorithm}
    if name != "none" and name not in known:
        raise UsageError(f"--recipe {name}: no such recipe for {algorithm}{suggest(name, known)}")
    return known.get(name)
