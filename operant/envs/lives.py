"""Lives of a game: losing one ends an episode for learning, while the game and its score go on.

A life counts as lost if others are left, as in OpenAI Baselines: some games stay at zero lives for
a few frames before they are over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np

from operant.core.errors import UsageError

if TYPE_CHECKING:  # this module imports torch, which environment workers do without
    from operant.core.experience import EnvStep

LIVES = "lives"  # in the info of an environment
LIFE_LOST = "life_lost"  # in the info of a step: it ends an episode, but not the game


def check_lives(env_id: str, info: dict[str, Any]) -> None:
    """Raise an error if an environment reports no lives."""
    if LIVES not in info:
        raise UsageError(
            f"episodic_life = True: {env_id} has no lives (its info lacks {LIVES!r}); "
            f"expected false, or a game that reports them"
        )


class LifeLoss(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Says in the info of each step whether it lost a life; the game itself is left as it is."""

    lives = 0

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(**kwargs)
        spec = self.env.spec
        check_lives(type(self.unwrapped).__name__ if spec is None else spec.id, info)
        self.lives = int(info[LIVES])
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        lives = int(info[LIVES])
        lost = 0 < lives < self.lives and not (terminated or truncated)
        self.lives = lives
        return observation, reward, terminated, truncated, info | {LIFE_LOST: lost}


class BatchLives:
    """The lives of the games in a vector environment."""

    def __init__(self, info: dict[str, Any]) -> None:
        self.begin(info)

    def begin(self, info: dict[str, Any]) -> None:
        """Take the lives from the info of a reset."""
        self.count = np.array(info[LIVES])

    def mark(self, step: EnvStep) -> EnvStep:
        """The step, with episodes ended where it lost a life: the next one begins at once."""
        lives = np.array(step.infos[LIVES])
        going_on = step.valid & ~(step.terminated | step.truncated)
        lost = (lives > 0) & (lives < self.count) & going_on
        self.count = lives
        if not lost.any():
            return step
        final = step.observation
        if step.final_observation is not None:
            final = {name: x.copy() for name, x in step.final_observation.items()}
            for name, x in final.items():
                x[lost] = step.observation[name][lost]
        infos = step.infos | {LIFE_LOST: lost}
        terminated = step.terminated | lost
        return step._replace(terminated=terminated, final_observation=final, infos=infos)
