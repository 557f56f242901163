"""Any Gymnasium environment, by id or by instance."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeVar

import gymnasium
from gymnasium.envs.registration import EnvSpec

from operant.core.config import Config, Count, CountOrZero, Fraction, NotNegative, Positive
from operant.core.errors import UsageError, suggest
from operant.envs import probe_tasks as probe
from operant.envs import snapshot
from operant.envs.environment import Environment
from operant.envs.preprocessing import Hide, Operation
from operant.envs.providers import atari

Manager = Literal["auto", "simple", "subproc", "native"]
Made = TypeVar("Made")


@dataclass(frozen=True, kw_only=True)
class EnvConfig(Config):
    """Which environments to run, and how many."""

    id: str = "CartPole-v1"  # a Gymnasium id, `module:id`, or `envpool/<task>` for EnvPool
    num_envs: Count = 8  # environments stepped as one
    manager: Manager = "auto"  # auto: native where there is a vector form, else simple
    workers: CountOrZero = 0  # processes, if any, that step them; 0: one for each core
    kwargs: dict[str, Any] = field(default_factory=dict)  # passed to the environment's constructor
    atari_stack: Count = 4  # Atari: frames in one observation
    frame_skip: Count = 4  # Atari: frames for which an action is repeated
    sticky: Fraction = 0.0  # Atari: probability that the simulator repeats the last action
    time_limit: CountOrZero = 0  # steps after which an episode is truncated; 0: as registered
    hide: tuple[int, ...] = ()  # entries of a vector observation to leave out
    reward_clip: NotNegative = 0.0  # learn from rewards clipped to this size; 0: as they are
    step_timeout: Positive = 60.0  # seconds after which a worker's step counts as hung
    max_restarts: CountOrZero = 3  # of each worker within ten minutes, before the run fails


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
            env = make_gym(env, **kwargs)
        self.env: gymnasium.Env[Any, Any] = env
        self.frames_per_step = frames_per_step
        spec = getattr(env, "spec", None)
        self.env_id = spec.id if spec is not None else type(env.unwrapped).__name__
        self.horizon = spec.max_episode_steps if spec is not None else None
        # Only a reset tells whether masks come in the info.
        info = env.reset()[1]
        self._closed = False
        both = (env.observation_space, env.action_space)
        super().__init__(self.env_id, both, index, operations, info, atari.stacked(env))

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


Env = GymEnv


def make_env(config: EnvConfig, index: int = 0, render_mode: str | None = None) -> GymEnv:
    """Environment `index` of a configuration."""
    check_env_id(config.id)
    kwargs = config.kwargs | ({} if render_mode is None else {"render_mode": render_mode})
    limit = {"max_episode_steps": config.time_limit} if config.time_limit else {}
    operations = operations_of(config)
    if atari.is_atari(config.id):
        preprocess = (config.atari_stack, config.frame_skip, config.sticky, config.time_limit)
        env = made(config.id, partial(atari.make, config.id, preprocess, **kwargs))
        return GymEnv(env, index, operations, config.frame_skip)
    if config.id.startswith(ENVPOOL):
        raise UsageError(
            f"id = {config.id!r}: EnvPool has no single environments; "
            f"expected manager = 'native' or the id {config.id.removeprefix(ENVPOOL)!r}"
        )
    env = make_gym(config.id, **limit, **kwargs)
    return GymEnv(env, index, operations)


def make_gym(env_id: str, **kwargs: Any) -> gymnasium.Env[Any, Any]:
    """A Gymnasium environment; its own checker is left out, since ours sees every step."""
    make = partial(gymnasium.make, env_id, **{"disable_env_checker": True} | kwargs)
    return made(env_id, make)


def operations_of(config: EnvConfig) -> list[Operation]:
    """What the configuration asks to be done with observations."""
    return [Hide("observation", tuple(config.hide))] if config.hide else []


ENVPOOL = "envpool/"
PROVIDERS = {  # namespace: the module that registers its ids, and the extra that installs it
    "ALE": ("ale_py", "atari"),
    "MinAtar": ("minatar.gym", "minatar"),
    "envpool": ("envpool", "envpool"),
    "mujoco": ("mujoco", "mujoco"),
}
MUJOCO = "gymnasium.envs.mujoco"


def check_env_id(env_id: str) -> None:
    """Refuse an id that cannot be made, before anything starts."""
    module, _, name = env_id.rpartition(":")
    namespace = name.rpartition("/")[0]
    _import(module, env_id)
    _provide(namespace, env_id)
    if namespace == "envpool":
        return _check_envpool(env_id)
    spec = spec_of(env_id)
    if spec is None:
        near = [name for name in gymnasium.registry if name.startswith(env_id[:3])]
        hint = suggest(env_id, near or gymnasium.registry)
        raise UsageError(f"id = {env_id!r}: no such environment{hint}")
    if str(spec.entry_point).startswith(MUJOCO):
        provider("mujoco", env_id)
    return None


def spec_of(env_id: str) -> EnvSpec | None:
    """What is registered under an id; without a version it is the latest, as in Gymnasium."""
    name = env_id.rpartition(":")[2]
    versions = [known for known in gymnasium.registry if known.startswith(name + "-v")]
    latest = max(versions, key=lambda known: int(known.rsplit("-v", 1)[1]), default="")
    return gymnasium.registry.get(name) or gymnasium.registry.get(latest)


def _check_envpool(env_id: str) -> None:
    task, known = env_id.removeprefix(ENVPOOL), provider("envpool", env_id).list_all_envs()
    if task not in known:
        raise UsageError(f"id = {env_id!r}: EnvPool has no such task{suggest(task, known)}")


def _provide(namespace: str, env_id: str) -> None:
    """Register the ids of a known namespace: Gymnasium leaves the import to its user."""
    if namespace == "operant":
        return probe.register()
    if namespace not in PROVIDERS or any(k.startswith(namespace + "/") for k in gymnasium.registry):
        return None
    module = provider(namespace, env_id)
    if namespace == "MinAtar":
        module.register_envs()
    elif namespace == "ALE":
        gymnasium.register_envs(module)
    return None


def _import(module: str, env_id: str) -> None:
    """Import the module of an id such as `package.module:Name-v0`, which registers it."""
    try:
        importlib.import_module(module or "gymnasium")
    except ImportError as error:
        raise UsageError(
            f"id = {env_id!r}: module {module!r} cannot be imported ({error}); "
            f"expected a module on the Python path that registers the environment"
        ) from error


def provider(namespace: str, env_id: str) -> Any:
    """The module behind a namespace, or the remedy if it is not installed."""
    module, extra = PROVIDERS[namespace]
    threshold = logging.root.manager.disable
    logging.disable(logging.WARNING)  # minatar warns that its colours lack a package
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UsageError(
            f"id = {env_id!r} needs the package {module.partition('.')[0]!r} ({error}); "
            f"install it with: pip install 'operant[{extra}]'"
        ) from None
    finally:
        logging.disable(threshold)


def made(env_id: str, make: Callable[[], Made]) -> Made:
    """Call `make`, and say what was wrong with the id or its arguments."""
    try:
        return make()
    except gymnasium.error.DependencyNotInstalled as error:
        raise UsageError(f"id = {env_id!r} needs a package that is missing: {error}") from error
    except (TypeError, gymnasium.error.Error) as error:
        raise UsageError(f"id = {env_id!r}: cannot be made with its kwargs: {error}") from error
