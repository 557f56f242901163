"""Fits a run to a vector environment of the user's own."""

from __future__ import annotations

from dataclasses import replace

from operant.envs.providers.own import size_of_vector
from operant.envs.providers.passed import exists_once
from operant.session.run_settings import RunConfig


def fit_vector(config: RunConfig) -> tuple[RunConfig, str]:
    """The configuration with as many environments as there are, and a line on what changed."""
    env, why = config.env, []
    size = size_of_vector(env)
    if size and size != env.num_envs:
        why.append(f"{size} environments: {env.id} has as many, not env.num_envs = {env.num_envs}")
        config = replace(config, env=replace(env, num_envs=size))
    if exists_once(env.id) and config.eval.every is not None:
        why.append(
            f"no evaluation: {env.id} exists once, and trains; pass a function that makes it"
        )
        config = replace(config, eval=replace(config.eval, every=None))
    return config, "\n".join(why)
