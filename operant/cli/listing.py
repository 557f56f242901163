"""What can be made on this machine, and which packages bring the rest."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatch
from functools import cache
from inspect import isfunction

import gymnasium
from gymnasium.envs.registration import load_env_creator

from operant.agents.registry import AGENTS
from operant.core.errors import UsageError
from operant.envs.providers import catalog, pettingzoo
from operant.recipes import RECIPES
from operant.session.recipe import Recipe

# Modules of Gymnasium that need a package which it does not install by itself.
EXTRAS = {
    catalog.MUJOCO: "operant[mujoco]",
    "gymnasium.envs.box2d": "operant[box2d]",
    "gymnasium.envs.phys2d": "gymnasium[jax]",
    "gymnasium.envs.tabular": "gymnasium[jax]",
}
SHOWN = 3  # environments named of those that a package would bring


def listing(pattern: str) -> str:
    """Agents, recipes and environments; `pattern` selects environments, and recipes for them.

    The pattern `agents` is for the agents alone.
    """
    if pattern == "agents":
        return "\n".join(_agents())
    known = [*catalog.known_ids(), *pettingzoo.games()]
    here = [env_id for env_id in known if can_be_made(env_id)]
    matching = [i for i in known if fnmatch(i.lower(), f"*{pattern.lower().strip('*')}*")]
    found = [env_id for env_id in matching if env_id in here]
    more = [*missing_namespaces(), *missing_packages([i for i in matching if i not in here])]
    if not matching:
        raise UsageError(f"no environment matches {pattern!r}; `operant list` shows them all")
    if not found:
        remedy = "; ".join(missing_packages(matching)) or "what they need cannot be imported"
        raise UsageError(f"no environment that matches {pattern!r} can be made here; {remedy}")
    recipes = _recipes(found)
    sections = {"agents": _agents(), "recipes": recipes, "environments": found, "more": more}
    return "\n".join("\n  ".join([k, *lines]) for k, lines in sections.items() if lines)


def _recipes(env_ids: Sequence[str]) -> list[str]:
    """The recipes that are for some of these environments, in columns."""
    fitting = [(recipe, [*filter(recipe.fits, env_ids)]) for recipe in RECIPES]
    meant = [(recipe, _meant(recipe, found)) for recipe, found in fitting if found]
    width = max((len(env) for _, env in meant), default=0)
    return [f"{recipe.name:19} {env:{width}}  {recipe.about}" for recipe, env in meant]


def can_be_made(env_id: str) -> bool:
    """Whether what is registered under this id can be imported, with the packages it needs."""
    try:
        catalog.check_env_id(env_id)
    except UsageError:
        return False
    if env_id not in gymnasium.registry:  # a game of several agents, which was imported
        return True
    entry_point = gymnasium.registry[env_id].entry_point
    if isinstance(entry_point, str):
        return _importable(entry_point)
    # Gymnasium registers functions that only raise, for what it has removed.
    return not (isfunction(entry_point) and entry_point.__module__ == "gymnasium.envs")


@cache
def _importable(entry_point: str) -> bool:
    try:
        load_env_creator(entry_point)
    except Exception:  # whatever a module raises when it is imported
        return False
    return True


def missing_namespaces() -> list[str]:
    """Namespaces whose package is not installed, and how to install it."""
    found = []
    for namespace, (_, extra) in catalog.PROVIDERS.items():
        try:
            catalog.provider(namespace, namespace)
        except UsageError:
            if namespace != "mujoco":  # whose environments are registered without it
                found.append(f"{namespace}/*: pip install 'operant[{extra}]'")
    return found if pettingzoo.games() else [*found, f"mpe2:*: {pettingzoo.EXTRA}"]


def missing_packages(env_ids: Sequence[str]) -> list[str]:
    """How to install what these environments need, where that is known."""
    needing: dict[str, list[str]] = {}
    for env_id in env_ids:
        registered = gymnasium.registry.get(env_id)
        entry_point = str(registered.entry_point) if registered else ""
        for module, extra in EXTRAS.items():
            if entry_point.startswith(module):
                needing.setdefault(extra, []).append(env_id)
    return [f"{_some(ids)}: pip install '{extra}'" for extra, ids in needing.items()]


def _meant(recipe: Recipe, fitting: Sequence[str]) -> str:
    """Which environments a recipe is for; a list of patterns would make too long a line."""
    if " " not in recipe.pattern:
        return recipe.pattern
    return f"{fitting[0]} and {len(fitting) - 1} more" if len(fitting) > 1 else fitting[0]


def _some(env_ids: Sequence[str]) -> str:
    rest = len(env_ids) - SHOWN
    return ", ".join(env_ids[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def _agents() -> list[str]:
    """Name, family, kinds of actions and paper of every agent, in columns."""
    rows = [(name, known.family, known.actions, known.paper) for name, known in AGENTS.items()]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
