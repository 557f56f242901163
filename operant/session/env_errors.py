"""What goes wrong when environments are made, as errors that name the setting."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields

from operant.core.errors import EnvironmentFault, UsageError, described
from operant.core.protocols import EnvironmentManager
from operant.envs.env_settings import EnvConfig
from operant.envs.managers.choose import make_manager

FIELDS = tuple(f"{field.name} " for field in fields(EnvConfig))


@contextmanager
def env_errors(env_id: str) -> Iterator[None]:
    """Environments that cannot be made are wrong usage, of a setting with its whole name."""
    try:
        yield
    except EnvironmentFault:
        raise
    except UsageError as error:
        known = str(error).startswith(FIELDS)
        raise UsageError(f"env.{error}" if known else str(error)) from None
    except Exception as error:  # whatever the environment's own constructor raises
        raise UsageError(f"env.id = {env_id!r}: cannot be made: {described(error)}") from error


def named_manager(env: EnvConfig, seed: int, num_envs: int | None = None) -> EnvironmentManager:
    """`make_manager`, with such errors."""
    with env_errors(env.id):
        return make_manager(env, seed, num_envs)
