"""Environments passed as objects in Python, as the settings that make them again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv, VectorWrapper

from operant.core.errors import UsageError
from operant.core.objects import find, is_local, name_of

Vector = VectorEnv[Any, Any, Any]


def settings_of(env: Any, settings: Any = None) -> dict[str, Any]:
    """The section `env` of a run for an environment passed as an id, a class or another object.

    `settings` are those given beside it; in place of them may stand the environment itself.
    """
    if settings is not None and not isinstance(settings, Mapping):
        if env is not None:
            raise UsageError(f"env = {settings!r}: expected settings, as the environment is {env}")
        env, settings = settings, None
    given = dict(settings or {})
    env = given.pop("id", None) if env is None else env
    found = {} if env is None else _settings(env, given)
    if "wrappers" in given:
        wrappers = given["wrappers"]
        listed = wrappers if isinstance(wrappers, list | tuple) else [wrappers]
        given["wrappers"] = [*found.get("wrappers", ()), *map(name_of, listed)]
    if "kwargs" in found and isinstance(given.get("kwargs"), Mapping):
        given["kwargs"] = {**found["kwargs"], **given["kwargs"]}
    return {**found, **given}


def exists_once(env_id: str) -> bool:
    """Whether this is a vector environment that can neither be copied nor made again."""
    return is_local(env_id) and isinstance(find(env_id, "id"), Lent)


class Lent:
    """A vector environment that exists once: whoever asks gets it, one at a time."""

    def __init__(self, env: Vector) -> None:
        self.env, self.taken = env, False
        self.__name__ = type(env).__name__

    def __call__(self) -> Vector:
        if self.taken:
            raise UsageError(
                f"env = {self.__name__}: the one vector environment that was passed is in use; "
                f"pass a function that makes it where several are needed"
            )
        self.taken = True
        return Borrowed(self)


class Borrowed(VectorWrapper[Any, Any, Any, Any, Any]):
    """A vector environment that closing gives back, since it belongs to the user."""

    def __init__(self, lender: Lent) -> None:
        super().__init__(lender.env)
        self.lender = lender

    def close(self, **kwargs: Any) -> None:
        self.lender.taken = False

    def __del__(self) -> None:
        """Leave the environment open, which the base class would close."""


def _settings(env: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(env, gymnasium.Env):
        return _from_spec(env)
    if isinstance(env, VectorEnv):
        return _vector_settings(env, given)
    if isinstance(env, str) or callable(env):
        return {"id": name_of(env)}
    raise UsageError(
        f"env = {env!r}: expected an id, a class derived from gymnasium.Env, a function that makes "
        f"an environment, or an environment"
    )


def _from_spec(env: gymnasium.Env[Any, Any]) -> dict[str, Any]:
    """An instance is made again: there are several in a run, and some of them for evaluation."""
    spec = env.spec
    if spec is None:
        name = type(env.unwrapped).__name__
        raise UsageError(
            f"env = an instance of {name}: a run needs several environments of its own; "
            f"pass the class {name}, or a function that makes one"
        )
    lost = [wrapper.name for wrapper in spec.additional_wrappers if wrapper.kwargs is None]
    if lost:
        raise UsageError(
            f"env = {spec.id} in {lost[0]}: this wrapper does not record its arguments; derive it "
            f"from gymnasium.utils.RecordConstructorArgs too, or pass a function that makes both"
        )
    wrappers = [wrapper.entry_point for wrapper in spec.additional_wrappers]
    registered = gymnasium.registry.get(spec.id)
    if registered is None or any(wrapper.kwargs != {} for wrapper in spec.additional_wrappers):
        again = replace(spec, kwargs=_not_shown(spec.kwargs))
        return {"id": name_of(_called(spec.id, partial(gymnasium.make, again)))}
    kwargs = _not_shown(spec.kwargs)
    changed = {k: x for k, x in kwargs.items() if x != registered.kwargs.get(k)}
    limit = spec.max_episode_steps
    return {
        "id": spec.id,
        **({"kwargs": changed} if changed else {}),
        **({"wrappers": wrappers} if wrappers else {}),
        **({"time_limit": limit} if limit and limit != registered.max_episode_steps else {}),
    }


def _vector_settings(env: Vector, given: Mapping[str, Any]) -> dict[str, Any]:
    count = given.get("num_envs", env.num_envs)
    if count != env.num_envs:
        raise UsageError(
            f"env.num_envs = {count!r}: the vector environment that was passed has {env.num_envs}; "
            f"leave env.num_envs out, or pass a function that takes `num_envs`"
        )
    return {"id": name_of(_vector_maker(env)), "num_envs": env.num_envs}


def _vector_maker(env: Vector) -> Callable[..., Vector]:
    """What makes a vector environment like this one, or lends the one that there is."""
    name = type(env).__name__
    if env.unwrapped is env and env.spec is not None:
        return _called(name, partial(_vector_from_spec, env.spec))
    if isinstance(env, SyncVectorEnv | AsyncVectorEnv):
        mode = env.metadata.get("autoreset_mode")
        return _called(name, partial(_vector_from_functions, type(env), env.env_fns, mode))
    return Lent(env)


def _vector_from_spec(spec: EnvSpec, num_envs: int) -> Vector:
    spec = replace(spec, kwargs={**_not_shown(spec.kwargs), "num_envs": num_envs})
    return gymnasium.make_vec(spec)


def _vector_from_functions(kind: type[Any], env_fns: Any, mode: Any, num_envs: int) -> Vector:
    fns = [env_fns[i % len(env_fns)] for i in range(num_envs)]
    made: Vector = kind(fns, autoreset_mode=mode)
    return made


def _not_shown(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments without the render mode: windows are for playing."""
    return {name: x for name, x in kwargs.items() if name != "render_mode"}


def _called(name: str, make: partial[Any]) -> partial[Any]:
    """A function with the name that errors and run directories show."""
    vars(make)["__name__"] = name
    return make
