"""EnvPool: batches of environments in C++, by ids such as `envpool/Pong-v5`."""

from __future__ import annotations

from typing import Any

from operant.core.errors import UsageError, suggest

NAMESPACE = "envpool/"


def is_envpool(env_id: str) -> bool:
    """Whether this id is a task of EnvPool."""
    return env_id.startswith(NAMESPACE)


def task_of(env_id: str) -> str:
    """EnvPool's own name of the task."""
    return env_id.removeprefix(NAMESPACE)


def check_task(module: Any, env_id: str) -> None:
    """Raise an error for a task that EnvPool does not have."""
    task, known = task_of(env_id), module.list_all_envs()
    if task not in known:
        raise UsageError(f"id = {env_id!r}: EnvPool has no such task{suggest(task, known)}")


def make_vector(module: Any, env_id: str, num_envs: int, seed: int, **kwargs: Any) -> Any:
    """A batch; its seed can only be given here."""
    settings = {"env_type": "gymnasium", "num_envs": num_envs, "seed": seed}
    return module.make(task_of(env_id), **settings | kwargs)


def seeded_when_made(env: Any) -> bool:
    """Whether a vector environment ignores the seed of `reset`, as those of EnvPool do."""
    return any(kind.__module__.startswith("envpool") for kind in type(env).__mro__)


def stacks_frames(env: Any) -> bool:
    """Whether the observations of a vector environment are stacks of EnvPool's Atari frames."""
    if not any(kind.__module__.startswith("envpool.atari") for kind in type(env).__mro__):
        return False
    # In colour, a frame takes three channels.
    return bool(env.config["stack_num"] == env.single_observation_space.shape[0])
