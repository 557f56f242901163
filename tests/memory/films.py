"""Environments that show stacks of frames, and count them."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from streams import APART, Streams

from operant.core.experience import EnvStep
from operant.core.tree import Array

Padding = Literal["zero", "repeat", "noise"]
SIDE = 3


PIXELS = np.arange(SIDE * SIDE, dtype=np.uint64).reshape(SIDE, SIDE)


def noise(*numbers: int) -> Array:
    """A frame that differs with each of the numbers."""
    key = sum(n * prime for n, prime in zip(numbers, (1_000_003, 7_919, 104_729), strict=False))
    return ((PIXELS + np.uint64(key)) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(40)).astype("u1")


class Films(Streams):
    """Streams with a stack `[depth, SIDE, SIDE]` beside the count, however the first is padded."""

    def __init__(
        self,
        count: int,
        waits: bool,
        seed: int = 0,
        chance: float = 0.3,
        depth: int = 4,
        padding: Padding = "zero",
    ) -> None:
        super().__init__(count, waits, seed, chance)
        self.depth, self.padding = depth, padding
        self.begins = [0] * count  # the rows in which the episodes under way began

    def stack(self, b: int, row: int, begin: int) -> Array:
        """The last frames in a row of an episode that began in row `begin`."""
        return np.stack([self._frame(b, k, begin) for k in range(row - self.depth + 1, row + 1)])

    def _frame(self, b: int, row: int, begin: int) -> Array:
        if row >= begin:
            return noise(b, row)
        if self.padding == "repeat":
            return noise(b, begin)
        return noise(b, begin, begin - row) if self.padding == "noise" else 0 * noise(0, 0)

    def observation(self) -> dict[str, Any]:
        for b, env in enumerate(self.envs):
            if env.first:
                self.begins[b] = len(env.rows)
        rows = [self.stack(b, len(e.rows), self.begins[b]) for b, e in enumerate(self.envs)]
        return super().observation() | {"film": np.stack(rows)}

    def step(self) -> EnvStep:
        begins = list(self.begins)
        step = super().step()
        if step.final_observation is None:
            return step
        rows = step.final_observation["o"][:, 0] % APART
        final = np.stack([self.stack(b, row, begins[b]) for b, row in enumerate(rows)])
        return step._replace(final_observation=step.final_observation | {"film": final})

    def truth(self, ids: list[int]) -> Array:
        """The stacks that the rows of these counts showed."""
        return np.stack([self._shown(self.envs[i // APART], i % APART) for i in ids])

    def _shown(self, env: Any, row: int) -> Array:
        begin = max(k for k in range(row + 1) if k == 0 or self._first(env, k))
        return self.stack(env.b, row, begin)

    @staticmethod
    def _first(env: Any, row: int) -> bool:
        return bool(env.rows[row].first if row < len(env.rows) else env.first)
