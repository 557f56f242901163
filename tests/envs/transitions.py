"""What managers say happened, as plain transitions an environment."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from operant.core.protocols import EnvironmentManager

Transition = tuple[bytes, Any, float, bool, bool, bytes]
Script = Sequence[Sequence[Any]]  # the actions of each environment, in turn


def play(manager: EnvironmentManager, script: Script, seed: int = 7) -> list[list[Transition]]:
    """The valid transitions of each environment when it takes its actions one after the other.

    A step that is not valid uses up no action, so modes that waste steps can be compared.
    """
    seen: list[list[Transition]] = [[] for _ in script]
    observation = {k: x.copy() for k, x in manager.reset(seed).items()}
    while min(len(one) for one in seen) < len(script[0]):
        at = [min(len(one), len(script[0]) - 1) for one in seen]
        actions = np.array([script[i][t] for i, t in enumerate(at)])
        step = manager.step({"action": actions})
        after = step.final_observation if step.final_observation is not None else step.observation
        for i in range(manager.num_envs):
            ended = bool(step.terminated[i] or step.truncated[i])
            following = after if ended else step.observation
            if step.valid[i] and len(seen[i]) < len(script[0]):
                outcome = (float(step.reward[i]), bool(step.terminated[i]), bool(step.truncated[i]))
                was, became = _bytes(observation, i), _bytes(following, i)
                seen[i].append((was, actions[i].tolist(), *outcome, became))
        observation = {k: x.copy() for k, x in step.observation.items()}
    return seen


def _bytes(observation: Any, row: int) -> bytes:
    return b"".join(observation[k][row].tobytes() for k in sorted(observation))


def crossings(episodes: list[Transition]) -> int:
    """How often what an action led to is not what the next one saw, within an episode."""
    return sum(one[5] != other[0] for one, other in pairwise(episodes) if not (one[3] or one[4]))
