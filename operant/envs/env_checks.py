"""Checks of an environment: Gymnasium's and ours, by playing it at random."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces as gs

from operant.core.errors import UsageError, described
from operant.core.spaces import Spaces
from operant.envs.bounds import tell
from operant.envs.env_settings import EnvConfig
from operant.envs.findings import Findings
from operant.envs.gymnasium_checks import check_by_gymnasium
from operant.envs.managers.exactness import random_actions, same_bytes
from operant.envs.nested_spaces import named
from operant.envs.preprocessing.action import ActionPreprocessor
from operant.envs.providers.atari import is_atari
from operant.envs.providers.gymnasium import make_simulator
from operant.envs.providers.own import is_vector, limited
from operant.envs.providers.passed import settings_of
from operant.envs.providers.pettingzoo import JointEnv, is_parallel
from operant.envs.returned_values import ReturnedValues
from operant.envs.step_api import wrong_reset, wrong_step

SEED, SEEDED_STEPS = 1, 50  # of the two episodes that must be the same
QUICK_STEPS = 2  # before training; more could meet what a run would survive
STOPPING = ("reset", "step", "spaces", "mask")  # faults that a run cannot begin with


def check_env(env: Any, steps: int = 200, **kwargs: Any) -> Findings:
    """What is wrong with an environment: an id, a class, a function, or an environment.

    `steps` random steps are taken; `kwargs` go to the environment. True if there are faults.
    """
    if isinstance(env, gymnasium.Env):
        return checked(env, type(env.unwrapped).__name__, steps)
    if is_parallel(env):
        return checked(JointEnv(env), str(env), steps)
    settings = settings_of(env)
    config = EnvConfig(**{**settings, "kwargs": kwargs})
    if is_vector(config):
        raise UsageError(f"id = {config.id!r}: makes a VectorEnv; check what makes one environment")
    simulator = make_simulator(config)
    try:
        return checked(simulator, config.id, steps)
    finally:
        simulator.close()


def checked(env: gymnasium.Env[Any, Any], env_id: str, steps: int) -> Findings:
    """All checks of one environment."""
    found = Findings(env_id)
    play = RandomPlay(env, found)
    if play.begin(SEED) and play.go_on(steps):
        _check_ends(env, found, play.episodes)
        _check_seeds(env, found, min(steps, SEEDED_STEPS))
        _check_metadata(env, found)
        check_by_gymnasium(env, found)
    return found


def check_quickly(env: gymnasium.Env[Any, Any], env_id: str) -> list[str]:
    """Raise an error for what a run could not begin with; other faults of the first steps."""
    found = Findings(env_id)
    play = RandomPlay(env, found)
    if play.begin(SEED):
        play.go_on(QUICK_STEPS)
    for about in STOPPING:
        if sentence := found.faults.get(about):
            raise UsageError(f"env.id = {env_id!r}: {sentence}")
    if sentence := found.faults.pop("bounds", ""):
        tell(env_id, sentence)
    return [f"{env_id}: {sentence} (operant check-env)" for sentence in found.faults.values()]


class RandomPlay:
    """Plays an environment with random actions that its masks allow, and checks what comes."""

    def __init__(self, env: gymnasium.Env[Any, Any], found: Findings) -> None:
        self.env, self.found, self.episodes = env, found, 0
        self.rng = np.random.default_rng(SEED)
        self.values: ReturnedValues | None = None

    def begin(self, seed: int | None = None) -> bool:
        """Reset it; false if what follows cannot be played."""
        arguments: dict[str, Any] = {} if seed is None else {"seed": seed}
        try:
            result: Any = self.env.reset(**arguments)
        except Exception as error:  # whatever the environment raises
            self.found.fault("reset", _why_reset_fails(error, arguments))
            return False
        if wrong := wrong_reset(result):
            self.found.fault("reset", wrong)
            return False
        if self.values is None and not self._read_spaces(result[1]):
            return False
        assert self.values is not None
        observation, info = result
        return self.values.check(observation, info, ended=False)

    def go_on(self, steps: int) -> bool:
        """Take so many steps, over several episodes; false if they could not be taken."""
        for _ in range(steps):
            result = self.step()
            if result is None:
                return False
            if result[2] or result[3]:
                self.episodes += 1
                if not self.begin():
                    return False
        return True

    def step(self) -> tuple[Any, ...] | None:
        """One random step; None if it failed."""
        assert self.values is not None
        drawn = random_actions(self.spaces, self.rng, observation=self.values.masks)
        try:
            result: Any = self.env.step(self.actions(drawn))
        except Exception as error:  # whatever the environment raises
            self.found.fault("step", f"step raises {described(error)}")
            return None
        self.found.steps += 1
        if wrong := wrong_step(result):
            self.found.fault("step", wrong)
            return None
        observation, reward, terminated, truncated, info = result
        self.values.check_reward(reward)
        fine = self.values.check(observation, info, ended=bool(terminated or truncated))
        return result if fine else None

    def _read_spaces(self, info: dict[str, Any]) -> bool:
        try:
            # Copies: drawing actions must not move the generators of the environment's own spaces.
            self.actions = ActionPreprocessor(copy.deepcopy(self.env.action_space))
            self.spaces = Spaces({}, self.actions.spaces)
            self.values = ReturnedValues(self.env.observation_space, info, self.found)
        except (UsageError, AttributeError) as error:
            self.found.fault("spaces", str(error))
            return False
        for name, space in named(self.env.action_space, "action").items():
            if isinstance(space, gs.Box) and not space.is_bounded():
                self.found.fault(
                    "action bounds",
                    f"action {name!r} is {space}, without bounds, so that it cannot be scaled; "
                    f"give it finite ones, such as Box(-1, 1)",
                )
        return True


def _why_reset_fails(error: Exception, arguments: dict[str, Any]) -> str:
    if arguments and isinstance(error, TypeError) and "seed" in str(error):
        return (
            "reset takes no `seed`, as in the old API of gym with its method `seed`; write "
            "`def reset(self, *, seed=None, options=None)` and call `super().reset(seed=seed)`"
        )
    return f"reset raises {described(error)}"


def _check_ends(env: Any, found: Findings, episodes: int) -> None:
    spec = getattr(env, "spec", None)
    limit = spec and (spec.max_episode_steps or is_atari(spec.id))  # the emulator has its own
    limit = limit or getattr(env.unwrapped, "horizon", None)
    if not episodes and not limited(env) and not limit:
        found.fault(
            "end",
            f"no episode ended in {found.steps} random steps, and there is no time limit; set "
            f"--env.time-limit, or register it with max_episode_steps",
        )


def _check_seeds(env: gymnasium.Env[Any, Any], found: Findings, steps: int) -> None:
    """The same seed and actions must give the same episode, unless it says that they do not."""
    if getattr(getattr(env, "spec", None), "nondeterministic", False):
        return
    first, second = (_record(env, steps) for _ in range(2))
    if not same_bytes(first, second):
        found.fault(
            "seeds",
            "the same seed gives different episodes; draw every random number from "
            "`self.np_random`, after `super().reset(seed=seed)` in reset",
        )


def _record(env: gymnasium.Env[Any, Any], steps: int) -> list[Any]:
    """What random actions from a fixed seed on lead to."""
    play, seen = RandomPlay(env, Findings("")), list[Any]()
    going = play.begin(SEED)
    for _ in range(steps):
        outcome = play.step() if going else None
        if play.values is None or outcome is None:
            break
        seen += [copy.deepcopy(play.values.last), repr(outcome[1:4])]
        if outcome[2] or outcome[3]:
            going = play.begin()
            seen.append(copy.deepcopy(play.values.last))
    return seen


def _check_metadata(env: gymnasium.Env[Any, Any], found: Findings) -> None:
    metadata = getattr(env, "metadata", None) or {}
    if not metadata.get("render_modes"):
        found.advise(
            "render",
            "metadata has no render_modes, so that `operant play` shows nothing; with "
            '{"render_modes": ["rgb_array"], "render_fps": 30} and a `render` that returns an '
            "image it can",
        )
