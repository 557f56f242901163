"""EnvPool: batches of environments in C++, by ids such as `envpool/Pong-v5`."""

from __future__ import annotations

from typing import Any

from operant.core.errors import UsageError, suggest
from operant.envs.env_settings import EnvConfig
from operant.envs.providers import atari

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


def is_atari(module: Any, env_id: str) -> bool:
    """Whether this is a task of EnvPool that takes the settings of Atari."""
    return "repeat_action_probability" in module.make_spec(task_of(env_id)).config._fields


def make_vector(module: Any, config: EnvConfig, seed: int, **kwargs: Any) -> Any:
    """A batch; its seed can only be given here."""
    settings: dict[str, Any] = {"env_type": "gymnasium", "num_envs": config.num_envs, "seed": seed}
    if is_atari(module, config.id):
        atari.refuse(config.id, kwargs)
        settings |= {
            "stack_num": config.frame_stack or atari.STACK,
            "frame_skip": config.frame_skip,
            "repeat_action_probability": config.sticky,
        }
    return module.make(task_of(config.id), **settings | kwargs)


def seeded_when_made(env: Any) -> bool:
    """Whether a vector environment ignores the seed of `reset`, as those of EnvPool do."""
    return any(kind.__module__.startswith("envpool") for kind in type(env).__mro__)


def stacks_frames(env: Any) -> bool:
    """Whether the observations of a vector environment are stacks of EnvPool's Atari frames."""
    if not any(kind.__module__.startswith("envpool.atari") for kind in type(env).__mro__):
        return False
    # In colour, a frame takes three channels.
    return bool(env.config["stack_num"] == env.single_observation_space.shape[0])
