"""Whether environments can be taken up again bit for bit, and what to do where they cannot."""

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
from operant.core.spaces import Spaces
from operant.envs.environment import Environment

STEPS = 20  # that the original and its copy are compared over


def probe(make: Callable[[], Environment]) -> bool:
    """Whether a snapshot, restored into a fresh environment, continues like the original."""
    original, copy = make(), make()
    rng = np.random.default_rng(0)
    try:
        original.reset(seed=1)
        actions = [sample(original.spaces, rng) for _ in range(2 * STEPS)]
        _play(original, actions[:STEPS])
        copy.restore(original.snapshot())
        return same(_play(original, actions[STEPS:]), _play(copy, actions[STEPS:]))
    except EnvironmentFault:
        return False
    finally:
        original.close()
        copy.close()


def sample(spaces: Spaces, rng: np.random.Generator, *lead: int) -> Any:
    """Random actions by name, `[*lead, ...]`."""
    found = {}
    for name, space in spaces.action.items():
        space.seed(int(rng.integers(2**31)))
        drawn = [np.asarray(space.sample()) for _ in range(math.prod(lead))]
        found[name] = np.stack(drawn).reshape((*lead, *(space.shape or ())))
    return found


def _play(env: Environment, actions: list[Any]) -> list[Any]:
    """What the actions lead to, with a reset at each end and one more at last."""
    seen: list[Any] = []
    for action in actions:
        observation, reward, terminated, truncated, _ = env.step(action)
        seen.append([tree.map(np.copy, observation), np.array([reward, terminated, truncated])])
        if terminated or truncated:
            seen.append(tree.map(np.copy, env.reset()))
    return [*seen, env.reset()]


def same(one: Any, other: Any) -> bool:
    """Whether two trees of arrays hold the same bytes."""
    ours, theirs = list(tree.leaves(one)), list(tree.leaves(other))
    return len(ours) == len(theirs) and all(
        path == place and np.asarray(x).tobytes() == np.asarray(y).tobytes()
        for (path, x), (place, y) in zip(ours, theirs, strict=True)
    )


class Resumable(ABC):
    """Environments that go on bit for bit where they can, else under a new seed."""

    def __init__(self, seed: int) -> None:
        self.seed, self.steps = seed, 0
        self.started = self.closed = False
        self.lost = False  # running episodes could not be restored: the next step begins new ones
        self._exact: bool | None = None

    @property
    def exact(self) -> bool:
        """Whether `state_dict` is enough to go on bit for bit; tried out once, on other copies."""
        if self._exact is None:
            self._exact = self._probe()
        return self._exact

    @exact.setter
    def exact(self, value: bool) -> None:
        self._exact = value

    @abstractmethod
    def _probe(self) -> bool: ...

    @abstractmethod
    def _capture(self) -> dict[str, Any]: ...

    @abstractmethod
    def _restore(self, state: dict[str, Any]) -> None: ...

    def state_dict(self) -> dict[str, Any]:
        state = {"seed": self.seed, "steps": self.steps, "exact": self.exact}
        return state | (self._capture() if self.exact else {})

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._check_open()
        self.seed, self.steps = int(state["seed"]), int(state["steps"])
        self.lost, self.started = not state["exact"], True
        if not self.lost:
            return self._restore(state)
        return warnings.warn(
            "these environments cannot be restored to the state they were saved in: running "
            "episodes count as truncated and new ones begin under a new seed, so the resumed "
            "run is statistically but not bit for bit the same",
            stacklevel=2,
        )

    def _seed_for(self, asked: int | None) -> int | None:
        """The seed of a reset: the one asked for, or a new one where episodes were lost."""
        self._check_open()
        if asked is not None:
            self.seed, self.steps = asked, 0
        elif self.lost:
            asked = derived(self.seed, self.steps)
        elif not self.started:
            asked = self.seed
        self.lost, self.started = False, True
        return asked

    def _check_open(self) -> None:
        if self.closed:
            raise EnvironmentFault("the environments are closed; make a new manager")

    def _check_started(self) -> None:
        self._check_open()
        if not self.started:
            raise EnvironmentFault("the environments are not reset; call reset before step")
