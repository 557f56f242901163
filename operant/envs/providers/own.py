"""Environments of the user's own: classes and functions by name, and objects passed in Python."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.wrappers import TimeLimit

from operant.core.errors import UsageError
from operant.core.objects import find, is_local, is_name
from operant.envs.env_settings import EnvConfig
from operant.envs.providers import pettingzoo

Single = gymnasium.Env[Any, Any]
Vector = VectorEnv[Any, Any, Any]
_sizes: dict[str, int | None] = {}  # by what was made: environments in it; None: it is a single one


def own(env_id: str) -> Callable[..., Any] | None:
    """The class or function that an id names; None for an id of Gymnasium."""
    if is_local(env_id):
        return _callable(env_id, find(env_id, "id"))
    if not is_name(env_id):
        return None
    if game := pettingzoo.game(env_id):
        return game
    try:
        found = find(env_id, "id")
    except UsageError:
        if env_id.partition(":")[0] not in sys.modules:
            raise
        return None  # the module has no such attribute, but may have registered such an id
    return _callable(env_id, found)


def make_single(env_id: str, make: Callable[..., Any], kwargs: Mapping[str, Any]) -> Single:
    """An environment of the user's own."""
    env = make(**kwargs)
    if pettingzoo.is_parallel(env):
        return pettingzoo.JointEnv(env, env_id)
    if isinstance(env, VectorEnv):
        raise UsageError(
            f"id = {env_id!r}: makes a VectorEnv, whose environments worker processes cannot share "
            f"out; use sampler = 'serial' and manager = 'auto' or 'native'"
        )
    if not isinstance(env, gymnasium.Env):
        raise UsageError(
            f"id = {env_id!r}: makes a {type(env).__name__}, which is no gymnasium.Env "
            f"and no pettingzoo.ParallelEnv; derive the class from gymnasium.Env: "
            f"`reset(seed=None, options=None)` returns (observation, info), and `step` "
            f"(observation, reward, terminated, truncated, info)"
        )
    return env


def limited(env: Any) -> bool:
    """Whether a wrapper around an environment cuts its episodes."""
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, TimeLimit):
            return True
        env = env.env
    return False


def make_vector(config: EnvConfig, make: Callable[..., Any]) -> Vector:
    """A vector environment of the user's own."""
    env: Vector = make(**_arguments(make, config.kwargs, config.num_envs))
    mode = env.metadata.get("autoreset_mode")
    if mode in (AutoresetMode.DISABLED, AutoresetMode.DISABLED.value):
        env.close()
        raise UsageError(
            f"id = {config.id!r}: its autoreset_mode is {AutoresetMode.DISABLED.value}, so that "
            f"episodes would not begin again; use AutoresetMode.NEXT_STEP or SAME_STEP"
        )
    return env


def is_vector(config: EnvConfig) -> bool:
    """Whether an id names what makes vector environments, and no manager of single ones is set."""
    make = own(config.id) if config.manager in ("auto", "native") else None
    return make is not None and _size(config, make) is not None


def size_of_vector(config: EnvConfig) -> int:
    """The number of environments in a vector environment that decides on it itself; 0 if none."""
    make = own(config.id)
    if make is None or not is_vector(config):
        return 0
    if "num_envs" in _parameters(make):
        return int(config.kwargs.get("num_envs", 0))
    return _size(config, make) or 0


def _callable(env_id: str, found: Any) -> Callable[..., Any]:
    if not callable(found):
        raise UsageError(
            f"id = {env_id!r}: is a {type(found).__name__}; expected a class derived from "
            f"gymnasium.Env, or a function that makes an environment"
        )
    made: Callable[..., Any] = found
    return made


def _size(config: EnvConfig, make: Callable[..., Any]) -> int | None:
    """The environments in what `make` makes; only a trial shows that of a function."""
    if isinstance(make, type) and not issubclass(make, VectorEnv):
        return None
    key = f"{config.id} {config.kwargs}"
    if key not in _sizes:
        made = make(**_arguments(make, config.kwargs, 1))
        _sizes[key] = made.num_envs if isinstance(made, VectorEnv) else None
        if isinstance(made, gymnasium.Env | VectorEnv) or pettingzoo.is_parallel(made):
            made.close()
    return _sizes[key]


def _arguments(
    make: Callable[..., Any], kwargs: Mapping[str, Any], num_envs: int
) -> dict[str, Any]:
    """Keyword arguments, with the number of environments for whoever takes it."""
    known = {"num_envs": num_envs} if "num_envs" in _parameters(make) else {}
    return known | dict(kwargs)


def _parameters(make: Callable[..., Any]) -> set[str]:
    try:
        return set(inspect.signature(make).parameters)
    except (TypeError, ValueError):  # some that are written in C have none
        return set()
