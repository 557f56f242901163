"""Evaluation ends also where the environment has no time limit."""

from __future__ import annotations

from dataclasses import replace

from operant.core.protocols import EnvironmentManager
from operant.envs.providers.atari import is_atari
from operant.envs.providers.own import limited
from operant.session.run_settings import RunConfig
from operant.session.simulator import simulator_of

# Ten times the usual time limit: longer episodes are nearly always those of a policy that is stuck.
DEFAULT_MAX_STEPS = 10_000
UNLIMITED = "has no time limit"


def limit_evaluation(config: RunConfig, manager: EnvironmentManager) -> tuple[RunConfig, str]:
    """The configuration with a limit on evaluation where there is no other, and a line on it."""
    if has_time_limit(config, manager):
        return config, ""
    steps = config.eval.max_steps or DEFAULT_MAX_STEPS
    why = (
        f"{config.env.id} {UNLIMITED}: evaluation cuts an episode after {steps:,} steps "
        f"(--eval.max-steps); --env.time-limit sets one for training, too"
    )
    return replace(config, eval=replace(config.eval, max_steps=steps)), why


def has_time_limit(config: RunConfig, manager: EnvironmentManager) -> bool:
    """Whether episodes are truncated after a number of steps, as far as one can tell."""
    if config.env.time_limit or is_atari(config.env.id):  # the emulator has a limit of its own
        return True
    simulator = simulator_of(manager)
    if limited(simulator):
        return True
    spec = getattr(simulator, "spec", None)
    both = (spec, getattr(spec, "config", None))  # where EnvPool has it
    own = getattr(getattr(simulator, "unwrapped", None), "horizon", None)  # of several agents
    return bool(own) or any(getattr(settings, "max_episode_steps", None) for settings in both)
