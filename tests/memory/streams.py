"""Environments whose observations count the rows that a replay should hold of them.

Row `k` of environment `b` shows `b * APART + k`: an episode's steps, then one row, not valid, with
its final observation, then the next episode. Whatever the autoreset mode, this is the truth.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

from operant.core.experience import EnvStep, Experience, HiddenState, Memo
from operant.memory.rollout import RolloutCache

APART = 100_000


class Row(NamedTuple):
    valid: bool
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    first: bool = False


class Stream:
    """One environment: `waits` shows the final observation and then wastes a step."""

    def __init__(self, b: int, waits: bool, seed: int, chance: float) -> None:
        self.b, self.waits, self.chance = b, waits, chance
        self.random = np.random.default_rng([seed, b])
        self.rows: list[Row] = []
        self.first, self.over = True, False

    @property
    def seen(self) -> int:
        """The observation to act on next."""
        return self.b * APART + len(self.rows)

    def step(self) -> tuple[Row, int | None]:
        """What happened, and the final observation if it was replaced at once."""
        if self.over:
            self.rows.append(Row(False))
            self.first, self.over = True, False
            return self.rows[-1], None
        ended, kind = self.random.random(2) < (self.chance, 0.5)
        row = Row(True, self.seen % 7, bool(ended and kind), bool(ended and not kind), self.first)
        self.rows.append(row)
        self.first, self.over = False, bool(ended and self.waits)
        if not ended or self.waits:
            return row, None
        final = self.seen
        self.rows.append(Row(False))
        self.first = True
        return row, final


class Streams:
    """Several environments as one, acting by what they see."""

    def __init__(self, count: int, waits: bool, seed: int = 0, chance: float = 0.3) -> None:
        self.envs = [Stream(b, waits, seed, chance) for b in range(count)]

    def observation(self) -> dict[str, Any]:
        return {"o": np.array([[env.seen] for env in self.envs])}

    def decide(self) -> tuple[dict[str, torch.Tensor], Memo]:
        """An action and a memo that follow from what is seen, and the state carried out."""
        seen = torch.tensor([env.seen for env in self.envs])
        return {"a": seen % 5}, Memo({"m": seen % 3}, HiddenState(h=(seen + 1)[:, None].double()))

    def step(self) -> EnvStep:
        answers = [env.step() for env in self.envs]
        valid, reward, terminated, truncated = np.array([row[:4] for row, _ in answers]).T
        flags = (terminated.astype(bool), truncated.astype(bool), valid.astype(bool))
        final = np.array([[final or 0] for _, final in answers])
        shown = {"o": final} if final.any() else None
        return EnvStep(self.observation(), reward.astype(np.float32), *flags, shown, {})

    def turn(self, *caches: Any) -> None:
        """One whole step, written to each of `caches`."""
        before, decided = self.observation(), self.decide()
        step = self.step()
        for cache in caches:
            cache.write(before, *decided, step)

    def fill(self, cache: RolloutCache) -> Experience:
        """The next chunk, in the cache's own bytes."""
        self.turn(cache)
        while not cache.ready():
            self.turn(cache)
        return cache.read()
