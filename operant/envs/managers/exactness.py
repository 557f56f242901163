"""Whether environments can be resumed bit for bit, and what to do where they cannot."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from operant.core import tree
from operant.core.errors import EnvironmentFault
from operant.core.seeds import derived
from operant.core.spaces import MASK, Space, Spaces, choices
from operant.core.tree import Array
from operant.envs.environment import Environment

TRIAL_STEPS = 20  # over which the original and its copy are compared


def resumes_exactly(make: Callable[[], Environment]) -> bool:
    """Whether a snapshot, restored into a fresh environment, continues like the original."""
    original, copy = make(), make()
    rng = np.random.default_rng(0)
    try:
        observation = original.reset(seed=1)
        for _ in range(TRIAL_STEPS):
            _, observation = _step(original, _random(original, observation, rng))
        copy.restore(original.snapshot())
        for _ in range(TRIAL_STEPS):
            action = _random(original, observation, rng)
            seen, observation = _step(original, action)
            if not same_bytes(seen, _step(copy, action)[0]):
                return False
        return same_bytes(original.reset(), copy.reset())
    except Exception:  # whatever reading and writing the attributes of a class raises
        return False
    finally:
        original.close()
        copy.close()


def random_actions(
    spaces: Spaces, rng: np.random.Generator, *lead: int, observation: Any = None
) -> Any:
    """Random actions by name, `[*lead, ...]`, that the masks in `observation` allow, if given."""
    actions = {}
    for name, space in spaces.action.items():
        space.seed(int(rng.integers(2**31)))
        mask = _mask_of(name, observation or {})
        if mask is None:
            drawn = [np.asarray(space.sample()) for _ in range(math.prod(lead))]
        else:
            rows = np.asarray(mask).reshape(math.prod(lead), -1)
            drawn = [_allowed(space, row, rng) for row in rows]
        actions[name] = np.stack(drawn).reshape((*lead, *(space.shape or ())))
    return actions


def _mask_of(name: str, observation: dict[str, Any]) -> Any:
    """The mask over an action; that of an only action may have no name."""
    return observation.get(f"{MASK}.{name}", observation.get(MASK))


def _allowed(space: Space, mask: Array, rng: np.random.Generator) -> Array:
    """A random choice of each discrete part among those that its share of the mask allows."""
    ends = np.cumsum(choices(space))
    parts = np.split(mask, ends[:-1])
    drawn = [rng.choice(np.flatnonzero(part) if part.any() else len(part)) for part in parts]
    return np.asarray(drawn, space.dtype)


def _random(env: Environment, observation: Any, rng: np.random.Generator) -> Any:
    return random_actions(env.spaces, rng, observation=observation)


def _step(env: Environment, action: Any) -> tuple[list[Any], Any]:
    """What an action leads to, with a reset at the end of an episode, and what to act on next."""
    observation, reward, terminated, truncated, _ = env.step(action)
    seen = [tree.map(np.copy, observation), np.array([reward, terminated, truncated])]
    if terminated or truncated:
        observation = env.reset()
        seen.append(tree.map(np.copy, observation))
    return seen, observation


def same_bytes(one: Any, other: Any) -> bool:
    """Whether two trees of arrays hold the same bytes."""
    ours, theirs = list(tree.leaves(one)), list(tree.leaves(other))
    return len(ours) == len(theirs) and all(
        path == place and np.asarray(x).tobytes() == np.asarray(y).tobytes()
        for (path, x), (place, y) in zip(ours, theirs, strict=True)
    )


class WorkerGone(EnvironmentFault):
    """A worker died between two steps, and its environments with it."""


class Resumable(ABC):
    """Environments that resume bit for bit where they can, else begin new episodes."""

    def __init__(self, seed: int) -> None:
        self.seed, self.steps = seed, 0
        self.started = self.closed = False
        self.episodes_lost = False  # could not be restored: the next step begins new ones
        self.incomplete = False  # the last state lacks environments, as a worker was gone
        self._exact: bool | None = None

    @property
    def exact(self) -> bool:
        """Whether `state_dict` is enough to go on bit for bit; tried once, on copies."""
        return self._can_resume() and not self.incomplete

    @exact.setter
    def exact(self, value: bool) -> None:
        self._exact = value

    @property
    def restarts(self) -> int:
        """Worker processes replaced so far."""
        return 0

    def _can_resume(self) -> bool:
        if self._exact is None:
            try:
                self._exact = self._try_resuming()
            except Exception:  # whatever reading and writing the attributes of a class raises
                self._exact = False
        return self._exact

    @abstractmethod
    def _try_resuming(self) -> bool: ...

    @abstractmethod
    def _capture(self) -> dict[str, Any]: ...

    @abstractmethod
    def _restore(self, state: dict[str, Any]) -> None: ...

    def state_dict(self) -> dict[str, Any]:
        self.incomplete = False
        captured = self._captured() if self._can_resume() else {}
        return {"seed": self.seed, "steps": self.steps, "exact": self.exact} | captured

    def _captured(self) -> dict[str, Any]:
        """The environments; if they can no longer be read, all else is still worth saving."""
        try:
            return self._capture()
        except WorkerGone as error:  # the next step replaces it
            self.incomplete = True
            warnings.warn(f"{error}; this checkpoint begins new episodes", stacklevel=2)
            return {}
        except Exception as error:  # whatever reading the attributes of a class raises
            self.exact = False
            warnings.warn(
                f"the environments can no longer be saved ({type(error).__name__}: {error}): from "
                f"here on a resumed run begins new episodes, and all else is saved",
                stacklevel=2,
            )
            return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._check_open()
        self.seed, self.steps = int(state["seed"]), int(state["steps"])
        self.episodes_lost, self.started = not state["exact"], True
        if not self.episodes_lost:
            return self._restore(state)
        return warnings.warn(
            "these environments cannot be restored to the state they were saved in: running "
            "episodes count as truncated and new ones begin under a new seed, so the resumed "
            "run is statistically but not bit for bit the same",
            stacklevel=2,
        )

    def _reset_seed(self, seed: int | None) -> int | None:
        """The seed for a reset: the one given, or a new one where episodes were lost."""
        self._check_open()
        if seed is not None:
            self.seed, self.steps = seed, 0
        elif self.episodes_lost:
            seed = derived(self.seed, self.steps)
        elif not self.started:
            seed = self.seed
        self.episodes_lost, self.started = False, True
        return seed

    def _check_open(self) -> None:
        if self.closed:
            raise EnvironmentFault("the environments are closed; make a new manager")

    def _check_started(self) -> None:
        self._check_open()
        if not self.started:
            raise EnvironmentFault("the environments are not reset; call reset before step")
