"""The trained agent of a run, without what training needs."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from operant.core.errors import CheckpointError
from operant.core.protocols import Agent
from operant.session.checkpoint import checkpoint
from operant.session.run_directory import CONFIG
from operant.session.run_settings import RunConfig
from operant.session.saved_spaces import read_interface
from operant.session.session import fitting, newest_checkpoint, read_config, warn
from operant.session.try_out import agent_for, try_out

BEST = "best"  # in the directory of a run: weights with the best evaluation


def load_agent(run: Path, trust: bool = False, best: bool = False) -> tuple[RunConfig, Agent]:
    """The configuration of a run and its agent from the newest checkpoint; the device is `auto`.

    `best` takes the weights with the best evaluation instead. No environment is made, unless the
    run is older than the file with its spaces.
    """
    config = dataclasses.replace(read_config(run / CONFIG, trust), device="auto")
    saved = best_checkpoint(run) if best else newest_checkpoint(run)
    if saved is None:
        raise CheckpointError(f"{run}: holds no checkpoint yet")
    interface = read_interface(run)
    if interface is None:
        config, _, agent, *_ = try_out(config)
    else:
        config, agent = agent_for(config, interface.spaces())
    with fitting(saved):
        if best:
            agent.network.load_state_dict(saved.state["network"])
            agent.actor.load_state_dict(saved.state["actor"])
        else:
            agent.load_state_dict(saved.state["container"]["agent"])
    return config, agent


def best_checkpoint(run: Path) -> checkpoint.Checkpoint:
    """The weights with the best evaluation of a run."""
    if not checkpoint.listing(run / BEST):
        raise CheckpointError(
            f"{run / BEST}: holds no weights: the run was not evaluated yet, or eval.every or "
            f"checkpoint.best switch it off; without `best`, the newest checkpoint is used"
        )
    return checkpoint.newest(run / BEST, warn)
