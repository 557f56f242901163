"""Any Gymnasium environment, by id or by instance, alone or as a vector environment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import gymnasium
from gymnasium.vector import VectorEnv
from gymnasium.wrappers import TimeLimit

from operant.core.errors import UsageError
from operant.core.objects import find
from operant.envs import snapshot
from operant.envs.env_settings import EnvConfig
from operant.envs.environment import Environment
from operant.envs.lives import LifeLoss
from operant.envs.preprocessing import frame_stack
from operant.envs.preprocessing.observation import Hide, Operation
from operant.envs.providers import atari, envpool, own
from operant.envs.providers.catalog import check_env_id, provider
from operant.envs.providers.pettingzoo import agents_of
from operant.envs.step_api import checked_reset

Made = TypeVar("Made")


class GymEnv(Environment):
    """A Gymnasium environment as an Environment."""

    def __init__(
        self,
        env: str | gymnasium.Env[Any, Any],
        index: int = 0,
        operations: Sequence[Operation] = (),
        frames_per_step: int = 1,
        **kwargs: Any,
    ) -> None:
        if isinstance(env, str):
            check_env_id(env)
            env = _make_single(env, **kwargs)
        self.env: gymnasium.Env[Any, Any] = env
        self.frames_per_step = frames_per_step
        spec = getattr(env, "spec", None)
        inner = env.unwrapped
        own_id = getattr(inner, "env_id", type(inner).__name__)
        self.env_id = spec.id if spec is not None else own_id
        own_limit = getattr(inner, "horizon", None)
        self.horizon = spec.max_episode_steps if spec is not None else own_limit
        # Only a reset shows whether action masks come in the info.
        _, info = checked_reset(env.reset(), self.env_id)
        self._closed = False
        both = (env.observation_space, env.action_space)
        super().__init__(self.env_id, both, index, operations, info, atari.stacks_frames(env))
        self.spaces = replace(self.spaces, agents=agents_of(env))

    def _reset(self, seed: int | None) -> tuple[Any, dict[str, Any]]:
        return self.env.reset(seed=seed)

    def _step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        return self.env.step(action)

    def snapshot(self) -> dict[str, Any]:
        return {"env": snapshot.capture(self.env), "steps": self.guard.steps}

    def restore(self, state: dict[str, Any]) -> None:
        snapshot.restore(self.env, state["env"])
        self.guard.steps = state["steps"]

    def render(self) -> Any:
        return self.env.render()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self.env.close()


Env = GymEnv  # rlpyt's name


def make_env(config: EnvConfig, index: int = 0, render_mode: str | None = None) -> GymEnv:
    """Environment `index` of a configuration."""
    env, operations = make_simulator(config, render_mode, index), operations_of(config)
    if not atari.is_atari(config.id):
        operations += frame_stack.merging(env, config.frame_stack)
    env = LifeLoss(env) if config.episodic_life else env
    made = GymEnv(env, index, operations, frames_per_step(config))
    if atari.is_atari(config.id):
        made.horizon = config.time_limit or None
    return made


def make_simulator(
    config: EnvConfig, render_mode: str | None = None, index: int = 0
) -> gymnasium.Env[Any, Any]:
    """A Gymnasium environment of a configuration, with its wrappers, not yet used."""
    check_env_id(config.id)
    kwargs = config.kwargs | ({} if render_mode is None else {"render_mode": render_mode})
    if atari.is_atari(config.id):
        place = (index, config.num_envs)
        make = partial(atari.make, config.id, atari.Preprocess.of(config), place, **kwargs)
        return wrapped(_made(config.id, make), config.wrappers)  # which see stacked frames
    if envpool.is_envpool(config.id):
        raise UsageError(
            f"id = {config.id!r}: EnvPool has no single environments; "
            f"expected manager = 'native' or the id {envpool.task_of(config.id)!r}"
        )
    if make_own := own.own(config.id):
        env = _made(config.id, partial(own.make_single, config.id, make_own, kwargs))
        env = TimeLimit(env, config.time_limit) if config.time_limit else env
    else:
        limit = {"max_episode_steps": config.time_limit} if config.time_limit else {}
        env = _make_single(config.id, **limit, **kwargs)
    return frame_stack.stacked(wrapped(env, config.wrappers), config.frame_stack)


def make_vector(config: EnvConfig, seed: int) -> VectorEnv[Any, Any, Any]:
    """The vector environment of a configuration."""
    count, kwargs = config.num_envs, config.kwargs
    limit = {"max_episode_steps": config.time_limit} if config.time_limit else {}
    make: Callable[[], VectorEnv[Any, Any, Any]]
    if make_own := own.own(config.id):
        make = partial(own.make_vector, config, make_own)
    elif atari.is_atari(config.id):
        make = partial(atari.make_vector, config.id, count, atari.Preprocess.of(config), **kwargs)
    elif envpool.is_envpool(config.id):
        module = provider("envpool", config.id)
        make = partial(envpool.make_vector, module, config, seed, **limit | kwargs)
    else:
        settings: dict[str, Any] = {
            "num_envs": count,
            "vectorization_mode": "vector_entry_point",
            **limit,
        }
        make = partial(gymnasium.make_vec, config.id, **settings | kwargs)
    return _made(config.id, make)


def wrapped(env: gymnasium.Env[Any, Any], wrappers: Sequence[str]) -> gymnasium.Env[Any, Any]:
    """An environment in wrappers, the outermost last."""
    for name in wrappers:
        wrapper = find(name, "wrappers")
        try:
            env = wrapper(env)
        except Exception as error:  # whatever the user's own constructor raises
            what = f"{type(error).__name__}: {error}"
            raise UsageError(
                f"wrappers = {name!r}: cannot be put around {env} ({what}); "
                f"it is called with the environment alone"
            ) from error
        if not isinstance(env, gymnasium.Env):
            made = type(env).__name__
            raise UsageError(f"wrappers = {name!r}: gives a {made}; expected a gymnasium.Wrapper")
    return env


def plays_atari(config: EnvConfig) -> bool:
    """Whether the environments of a configuration are Atari games, of ALE or of EnvPool."""
    return atari.is_atari(config.id) or (
        envpool.is_envpool(config.id)
        and envpool.is_atari(provider("envpool", config.id), config.id)
    )


def frames_per_step(config: EnvConfig) -> int:
    """Simulator frames behind one step of the environments of a configuration."""
    return config.frame_skip if plays_atari(config) else 1


def operations_of(config: EnvConfig) -> list[Operation]:
    """The operations on observations that a configuration asks for."""
    stacked = config.frame_stack > 1 and not plays_atari(config)
    return [Hide("observation", tuple(config.hide), stacked)] if config.hide else []


def _make_single(env_id: str, **kwargs: Any) -> gymnasium.Env[Any, Any]:
    """A Gymnasium environment; its own checker is left out, since ours sees every step."""
    make = partial(gymnasium.make, env_id, **{"disable_env_checker": True} | kwargs)
    return _made(env_id, make)


def _made(env_id: str, make: Callable[[], Made]) -> Made:
    """Call `make`, and say what was wrong with the id or its arguments."""
    try:
        return make()
    except gymnasium.error.DependencyNotInstalled as error:
        raise UsageError(f"id = {env_id!r} needs a package that is missing: {error}") from error
    except (TypeError, gymnasium.error.Error) as error:
        raise UsageError(f"id = {env_id!r}: cannot be made with its kwargs: {error}") from error
