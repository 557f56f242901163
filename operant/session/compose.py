"""The configuration of a run: defaults, then a recipe, then a file, then flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from operant.agents.registry import agent_name
from operant.config import from_tree, parse_flags
from operant.core.config import AgentConfig
from operant.core.errors import UsageError, suggest
from operant.core.schedule import Schedule
from operant.envs.providers.catalog import full_id
from operant.session.recipe import Recipe
from operant.session.run_settings import RunConfig, run_config, split_algorithm, split_network


def compose(
    algorithm: str,
    tree: Mapping[str, Any],
    flags: Sequence[str] = (),
    recipe: str = "auto",
    recipes: Sequence[Recipe] = (),
    source: str = "",
    others: Sequence[str] = (),
) -> tuple[RunConfig, Recipe | None]:
    """The configuration, and the recipe that it started from, if any.

    `tree` holds settings as a configuration file does, and `source` is that file's name, for
    errors. `recipe` is the name of one of `recipes`, `auto` for the first that is for this agent
    and environment, or `none`. `others` are flags that are read elsewhere, for suggestions.
    """
    written, tree = split_algorithm(tree, source)
    network, tree = split_network(tree)
    algorithm = _algorithm(algorithm, written, flags, source)
    cls = run_config(algorithm, network)
    draft, _ = parse_flags(cls, flags, from_tree(cls, tree, source=source), others=others)
    env_id = full_id(draft.env.id)
    chosen = _recipe(recipe, [r for r in recipes if r.algorithm == algorithm], algorithm, env_id)
    if chosen and recipe != "auto" and not _names_env(tree, flags):
        env_id = _env_of(chosen)
    base = from_tree(cls, _fitting(chosen, network)) if chosen else cls()
    base = from_tree(cls, tree, base, source=source)
    config, words = parse_flags(cls, flags, base, others=others)
    if words:
        raise UsageError(f"{words[0]!r}: expected a flag, such as --env.id {words[0]}")
    agent = in_steps(config.agent, config.steps)
    return replace(config, agent=agent, env=replace(config.env, id=env_id)), chosen


def in_steps(agent: AgentConfig, steps: int) -> AgentConfig:
    """An agent's settings for a run of so many steps: schedules that are shares of it in steps."""
    schedules = {k: x for k, x in vars(agent).items() if isinstance(x, Schedule)}
    changes: dict[str, Any] = {name: x.of_run(steps) for name, x in schedules.items()}
    return replace(agent, **changes)


def _fitting(recipe: Recipe, network: str) -> Mapping[str, Any]:
    """The settings of a recipe; those of its network are not for one of the user's own."""
    return {k: x for k, x in recipe.settings.items() if not (network and k == "network")}


def _names_env(tree: Mapping[str, Any], flags: Sequence[str]) -> bool:
    """Whether a file or a flag says which environment it is."""
    return "id" in tree.get("env", {}) or any(f.split("=")[0] == "--env.id" for f in flags)


def _env_of(recipe: Recipe) -> str:
    """The environment of a recipe that was named without one."""
    if not recipe.own_env:
        raise UsageError(
            f"--recipe {recipe.name}: is for {recipe.pattern}; name one of them with --env.id"
        )
    return full_id(recipe.own_env)


def _algorithm(named: str, written: str, flags: Sequence[str], source: str) -> str:
    """The agent's name, from the command or the file."""
    if any(flag.split("=")[0] == "--algorithm" for flag in flags):
        raise UsageError("--algorithm: is no flag; name the agent first, as in `operant train ppo`")
    if not named and not written:
        raise UsageError("which agent? expected its name, such as `operant train ppo`")
    named = agent_name(named)
    if named and written and written != named:
        raise UsageError(f"{source}: algorithm = {written!r}, and the command names {named!r}")
    return named or written


def _recipe(name: str, recipes: Sequence[Recipe], algorithm: str, env_id: str) -> Recipe | None:
    """The recipe of this name among those of one agent, or the first for the environment."""
    if name == "auto":
        return next((recipe for recipe in recipes if recipe.fits(env_id)), None)
    known = {recipe.name: recipe for recipe in recipes}
    if name != "none" and name not in known:
        raise UsageError(f"--recipe {name}: no such recipe for {algorithm}{suggest(name, known)}")
    return known.get(name)
