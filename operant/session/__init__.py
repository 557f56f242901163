"""Runs: from a configuration to a trained agent in a run directory.

`compose` makes a RunConfig, `try_out` resolves what `auto` means and makes the agent, `build` puts
the parts together, a Session keeps the run directory with its lock and checkpoints, and a Runner
trains, with `callbacks` of the user's own. `trained_policy` gives the result to other programs,
`trust` decides what code a run may import, and `examine` tells whether a run is whole. Below this
package nothing knows of files or of the whole configuration.
"""

from typing import TYPE_CHECKING

from operant.core.lazy import lazy_names

if TYPE_CHECKING:
    from operant.session.load_run import load_agent as load_agent
    from operant.session.recipe import Recipe as Recipe
    from operant.session.run_settings import RunConfig as RunConfig
    from operant.session.run_settings import run_config as run_config
    from operant.session.runner import BaseRunner as BaseRunner
    from operant.session.runner import Runner as Runner
    from operant.session.session import Session as Session

__getattr__ = lazy_names(__name__)
