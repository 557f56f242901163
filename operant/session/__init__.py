"""Runs: from a configuration to a trained agent in a run directory.

`compose` makes a RunConfig, `try_out` resolves what `auto` means and makes the agent, `build` puts
the parts together, a Session keeps the run directory with its lock and checkpoints, and a Runner
trains. Below this package nothing knows of files or of the whole configuration.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from operant.session.recipe import Recipe
    from operant.session.run_settings import RunConfig, run_config
    from operant.session.runner import BaseRunner, Runner
    from operant.session.session import Session, load_agent

MODULES = {
    "BaseRunner": "runner",
    "Recipe": "recipe",
    "RunConfig": "run_settings",
    "Runner": "runner",
    "Session": "session",
    "load_agent": "session",
    "run_config": "run_settings",
}
__all__ = ["BaseRunner", "Recipe", "RunConfig", "Runner", "Session", "load_agent", "run_config"]


def __getattr__(name: str) -> Any:
    # On demand: most of these import torch, and commands such as `operant plot` do without it.
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{MODULES[name]}"), name)
