"""Says what keeps a run from being resumed exactly."""

from __future__ import annotations

from collections.abc import Sequence

from operant.core.seeds import seed_for
from operant.envs.managers.native import OPAQUE
from operant.envs.providers.passed import exists_once
from operant.envs.snapshot import why_inexact
from operant.session.run_settings import RunConfig
from operant.session.session import warn
from operant.session.simulator import simulator_of
from operant.session.try_out import one_environment


def find_obstacle(config: RunConfig, reasons: Sequence[str]) -> str:
    """What keeps a run from being resumed exactly, if there are `reasons`; said before training."""
    if not reasons:
        return ""
    why = inexact_reason(config)
    warn(
        f"env.id = {config.env.id!r}: {why}, so resuming is not exact: it begins new episodes; "
        f"weights and all else are saved"
    )
    return why


def inexact_reason(config: RunConfig) -> str:
    """What of the environments of a run cannot be saved, found on one of them."""
    if exists_once(config.env.id):
        return "there is no copy of the environments to try it on"
    manager = one_environment(config)
    try:
        manager.reset(seed_for(config.seed, "env"))
        simulator = simulator_of(manager)
        package = type(getattr(simulator, "unwrapped", simulator)).__module__.split(".")[0]
        if package in OPAQUE:
            return f"the vector environments of {package} give no access to their state"
        return why_inexact(simulator)
    finally:
        manager.close()
