"""Probe environments: tasks with known values and returns, solved in seconds.

Values at discount factor gamma: `ConstantReward` 1; `ObservedReward` the observation;
`DelayedReward` gamma, then 1; `TruncatedForever` 1 / (1 - gamma), since its episodes are truncated
and never terminate. `MatchAction` rewards the action that the observation asks for; `best_return`
and `random_return` give its returns. `register` makes them known as `operant/<name>-v0`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces as gs

CUES = 3  # number of cues of MatchAction, each with an action of its own
SIDE = 36  # pixels: the smallest image that a Nature CNN takes
BOUND = 2.0  # of Box actions: not 1, so that rescaling matters
ObservationKind = Literal["box", "dict", "image", "mixed"]
ActionKind = Literal["discrete", "multidiscrete", "box", "dict"]
PARTS = {
    "box": ("vector",),
    "dict": ("vector", "other"),
    "image": ("image",),
    "mixed": ("image", "vector"),
}
ACTION_SPACES: dict[str, gymnasium.Space[Any]] = {
    "discrete": gs.Discrete(CUES),
    "multidiscrete": gs.MultiDiscrete([CUES, 2]),
    "box": gs.Box(-BOUND, BOUND, (2,), np.float32),
    "dict": gs.Dict(
        {"choice": gs.Discrete(CUES), "amount": gs.Box(-BOUND, BOUND, (1,), np.float32)}
    ),
}
Step = tuple[Any, float, bool, bool, dict[str, Any]]


def register() -> None:
    """Make the tasks known to Gymnasium; a second call does nothing."""
    entries: dict[str, tuple[str, dict[str, Any]]] = {
        "ConstantReward": ("ValueTask", {"rewards": (1.0,)}),
        "ObservedReward": ("ValueTask", {"rewards": (0.0,), "observed": True}),
        "DelayedReward": ("ValueTask", {"rewards": (0.0, 1.0)}),
        "TruncatedForever": ("ValueTask", {"rewards": (1.0,), "limit": 5}),
        "MatchAction": ("MatchAction", {}),
    }
    for name, (kind, kwargs) in entries.items():
        if f"operant/{name}-v0" not in gymnasium.registry:
            gymnasium.register(
                f"operant/{name}-v0", f"operant.envs.probe_tasks:{kind}", kwargs=kwargs
            )


class ValueTask(gymnasium.Env[Any, Any]):
    """Rewards that do not depend on actions.

    The observation is the number of steps taken, or if `observed` the next reward. With a `limit`
    the first reward repeats, the observation stays the same, and the episode is truncated.
    """

    def __init__(
        self,
        rewards: tuple[float, ...],
        observed: bool = False,
        limit: int = 0,
        action: ActionKind = "discrete",
    ) -> None:
        self.rewards, self.observed, self.limit = rewards, observed, limit
        self.observation_space = gs.Box(-1, len(rewards), (1,), np.float32)
        self.action_space = ACTION_SPACES[action]
        self.t, self.sign = 0, 1.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.t, self.sign = 0, float(self.np_random.choice([-1.0, 1.0]))
        return self._observation(), {}

    def step(self, action: Any) -> Step:
        at = 0 if self.limit else self.t
        reward = self.sign if self.observed else self.rewards[at]
        self.t += 1
        terminated = not self.limit and self.t == len(self.rewards)
        return self._observation(), reward, terminated, self.t == self.limit, {}

    def _observation(self) -> Any:
        shown = self.sign if self.observed else 0.0 if self.limit else float(self.t)
        return np.array([shown], np.float32)


@dataclass(frozen=True)
class Variant:
    """Which MatchAction: its observations and actions, and what makes it hard."""

    observation: ObservationKind = "box"  # of a dict, one part at random shows the cue
    action: ActionKind = "discrete"
    mask: bool = False  # one wrong choice is masked, and raises an error
    memory: bool = False  # the cue is shown at step 1 of 3, and the action counts at step 3
    length: int = 1  # steps in an episode without memory, each with a new cue


def best_return(variant: Variant) -> float:
    """Undiscounted return of the best policy."""
    return 1.0 if variant.memory else float(variant.length)


def random_return(variant: Variant) -> float:
    """Undiscounted return of the uniform policy over the actions that are not masked."""
    choice = 1 / (CUES - variant.mask)
    targets = [_amount(cue) for cue in range(CUES)]
    misses = [((BOUND + t) ** 2 + (BOUND - t) ** 2) / (4 * BOUND) for t in targets]
    amount = 1 - sum(misses) / CUES / BOUND
    parts = {
        "discrete": [choice],
        "multidiscrete": [choice, 1 / 2],
        "box": [amount],
        "dict": [choice, amount],
    }[variant.action]
    return best_return(variant) * sum(parts) / len(parts)


class MatchAction(gymnasium.Env[Any, Any]):
    """Reward one for the action that the observation asks for, less for others."""

    def __init__(self, **kwargs: Any) -> None:
        self.variant = v = Variant(**kwargs)
        self.asking = int(v.memory)  # one more entry marks the step whose action counts
        parts: dict[str, gymnasium.Space[Any]] = {
            name: gs.Box(0, 255, (1, SIDE, SIDE), np.uint8)
            if name == "image"
            else gs.Box(0, 1, (CUES + self.asking,), np.float32)
            for name in PARTS[v.observation]
        }
        self.plain = len(parts) == 1
        self.action_space = ACTION_SPACES[v.action]
        if v.mask and not self.plain:
            size = gs.MultiBinary(CUES + 2 * (v.action == "multidiscrete"))
            parts["action_mask"] = gs.Dict({"choice": size}) if v.action == "dict" else size
        self.observation_space = next(iter(parts.values())) if self.plain else gs.Dict(parts)
        self.length = 3 if v.memory else v.length
        self.t = self.cue = self.forbidden = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.t = 0
        self._draw()
        return self._observation(), self._info()

    def step(self, action: Any) -> Step:
        self._check_mask(action)
        self.t += 1
        counts = not self.variant.memory or self.t == self.length
        reward = self._reward(action) if counts else 0.0
        if not self.variant.memory:
            self._draw()
        return self._observation(), reward, self.t == self.length, False, self._info()

    def _draw(self) -> None:
        self.cue = int(self.np_random.integers(CUES))
        self.forbidden = (self.cue + 1 + int(self.np_random.integers(CUES - 1))) % CUES

    def _reward(self, action: Any) -> float:
        if self.variant.action == "discrete":
            return float(action == self.cue)
        if self.variant.action == "multidiscrete":
            return (float(action[0] == self.cue) + float(action[1] == self.cue % 2)) / 2
        amount = action["amount"] if self.variant.action == "dict" else action
        near = 1 - float(np.abs(amount - _amount(self.cue)).mean()) / BOUND
        if self.variant.action == "box":
            return near
        return (near + float(action["choice"] == self.cue)) / 2

    def _check_mask(self, action: Any) -> None:
        chosen = {"multidiscrete": lambda: action[0], "dict": lambda: action["choice"]}
        choice = chosen.get(self.variant.action, lambda: action)()
        if self.variant.mask and choice == self.forbidden:
            raise ValueError(f"choice {choice} is forbidden by the action mask")

    def _observation(self) -> Any:
        names = PARTS[self.variant.observation]
        hidden = self.variant.memory and self.t > 0
        shown = -1 if hidden else int(self.np_random.integers(len(names)))
        parts = {name: self._part(name, i == shown) for i, name in enumerate(names)}
        if self.plain:
            return parts[names[0]]
        return parts | ({"action_mask": self._mask()} if self.variant.mask else {})

    def _part(self, name: str, shown: bool) -> Any:
        asked = self.asking * (self.t == self.length - 1)
        if name == "image":
            image = np.zeros((1, SIDE, SIDE), np.uint8)
            width = SIDE // (CUES + 1)
            image[:, :, self.cue * width : (self.cue + 1) * width] = 255 * shown
            image[:, :, CUES * width :] = 255 * asked
            return image
        cue = np.arange(CUES) == self.cue
        return np.append(cue * shown, [asked] * self.asking).astype(np.float32)

    def _mask(self) -> Any:
        choice = (np.arange(CUES) != self.forbidden).astype(np.int8)
        if self.variant.action == "dict":
            return {"choice": choice}
        others = [1, 1] if self.variant.action == "multidiscrete" else []
        return np.append(choice, others).astype(np.int8)

    def _info(self) -> dict[str, Any]:
        return {"action_mask": self._mask()} if self.variant.mask and self.plain else {}


def _amount(cue: int) -> float:
    return (cue - 1) * 0.8 * BOUND
