"""A ring of past experience, read in windows of consecutive steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from operant.core import tree
from operant.core.errors import UsageError
from operant.core.experience import Arrays, EnvStep, Experience, Memo, Tensors
from operant.core.state import restore, state_of
from operant.memory.rollout import RolloutCache

SEEN = ("observation", "hidden_state", "first")
STEPS = ("action", "memo", "reward", "terminated", "truncated", "valid")
STORED = (*SEEN, *STEPS)
ATTEMPTS = 1000  # to draw a valid step, where about half or more of the rows are


class ExperienceReplay:
    """The last `size` steps, `[rows, B]`, each environment's episodes one after another.

    An episode is followed by one row that is not `valid` and holds its final observation, so the
    row after a step always shows what the step led to: no observation is stored twice, and none
    is ever taken from after a reset. The row at the cursor holds what the next action will see.
    """

    def __init__(self, size: int, min_size: int, seed: int) -> None:
        self.size, self.min_size = size, max(1, min_size)
        self.random = np.random.default_rng(seed)
        self.stored = 0  # valid steps ever stored
        self.cursor = self.count = np.zeros(0, dtype=np.int64)  # by environment
        self.arrays: Any = None
        self.ring: Any = None  # the same bytes, as torch sees them
        self.single = RolloutCache(1)

    def store(self, chunk: Experience) -> None:
        """Append a chunk with one vectorised write."""
        part = tree.numpy(chunk)
        steps, envs = part.reward.shape
        if self.arrays is None:
            self._allocate(part)
        self._check_room(steps, envs)
        columns = np.arange(envs)
        # A step that was followed by a reset at once leaves a row for its final observation.
        before = np.cumsum(part.replaced, axis=0) - part.replaced
        rows = (self.cursor + np.arange(steps)[:, None] + before) % self.capacity
        for name in STORED:
            source = tree.index(getattr(part, name), slice(0, steps))
            tree.write(getattr(self.arrays, name), (rows, columns), source)
        t, b = np.nonzero(part.replaced)
        if len(t):
            final, state = (part.final_observation, (t, b)), (part.hidden_state, (t + 1, b))
            self._write_sight((rows[t, b] + 1) % self.capacity, b, final, state)
        advance = steps + part.replaced.sum(axis=0)
        self.cursor = (self.cursor + advance) % self.capacity
        self.count = np.minimum(self.count + advance, self.capacity - 1)
        last = (np.full(envs, steps), columns)
        self._write_sight(self.cursor, columns, (part.observation, last), (part.hidden_state, last))
        self.arrays.first[self.cursor, columns] = part.first[steps]
        self.stored += int(part.valid.sum())

    def _check_room(self, steps: int, envs: int) -> None:
        if self.capacity < 2 * steps + 2:  # every step may end an episode, and so take two rows
            raise UsageError(
                f"replay size = {self.size}: too small for chunks of {steps} steps of {envs} "
                f"environments; expected at least {(2 * steps + 1) * envs}"
            )

    def _allocate(self, part: Experience) -> None:
        envs = part.reward.shape[1]
        self.capacity = -(-self.size // envs) + 1
        shape = (self.capacity, envs)
        rows = {k: getattr(part, k) for k in STORED}
        self.arrays = Experience(
            **tree.map(lambda x: np.zeros((*shape, *x.shape[2:]), x.dtype), rows),
            final_observation=None,
            replaced=None,
        )
        self.ring = tree.tensors(self.arrays)
        self.cursor, self.count = np.zeros((2, envs), dtype=np.int64)

    def _write_sight(
        self, rows: tree.Array, columns: tree.Array, seen: tuple[Any, Any], state: tuple[Any, Any]
    ) -> None:
        """Rows in which something was seen but nothing decided."""
        at = (rows, columns)
        tree.write(self.arrays.observation, at, tree.index(*seen))
        tree.write(self.arrays.hidden_state, at, tree.index(*state))
        for name in ("first", "terminated", "truncated", "valid", "reward"):
            getattr(self.arrays, name)[at] = 0

    def sample(self, batch_size: int, length: int = 1) -> Experience:
        """`batch_size` windows of `length` steps, drawn uniformly: an Experience `[length, batch]`.

        Each window begins with a valid step. `hidden_state` has its first row only, and what an
        action led to is always the next row of `observation`.
        """
        rows, columns = self._draw(batch_size, length)
        seen = torch.from_numpy(
            ((rows + np.arange(length + 1)[:, None]) % self.capacity) * len(self.count) + columns
        )
        taken = {k: self._gather(k, seen[:length]) for k in STEPS}
        return Experience(
            observation=self._gather("observation", seen),
            hidden_state=self._gather("hidden_state", seen[:1]),
            first=self._gather("first", seen),
            **taken,
            final_observation=None,
            replaced=None,
        )

    def _gather(self, name: str, places: torch.Tensor) -> Any:
        return tree.map(lambda x: x.flatten(0, 1)[places], getattr(self.ring, name))

    def _draw(self, batch_size: int, length: int) -> tuple[tree.Array, tree.Array]:
        starts = np.cumsum(np.maximum(self.count - length + 1, 0))
        if starts[-1] == 0:
            raise UsageError(f"the replay holds no {length} consecutive steps yet; collect more")
        rows = np.zeros(batch_size, dtype=np.int64)
        columns = np.zeros(batch_size, dtype=np.int64)
        open_ = np.arange(batch_size)
        for _ in range(ATTEMPTS):
            if not len(open_):
                return rows, columns
            place = self.random.integers(starts[-1], size=len(open_))
            column = np.searchsorted(starts, place, side="right")
            behind = starts[column] - place + length - 1  # steps from the cursor back to the start
            rows[open_] = (self.cursor[column] - behind) % self.capacity
            columns[open_] = column
            open_ = open_[~self.arrays.valid[rows[open_], columns[open_]]]
        raise UsageError(
            f"the replay holds no {length} consecutive steps of which the first is valid; "
            f"collect more, or use a larger replay than {self.size} steps"
        )

    def write(self, observation: Arrays, action: Tensors, memo: Memo, step: EnvStep) -> None:
        """One whole step: what was seen, decided and answered."""
        self.single.write(observation, action, memo, step)
        self.store(self.single.read())

    def ready(self) -> bool:
        """Whether enough was stored to learn from."""
        return self.stored >= self.min_size

    def holds(self, length: int) -> bool:
        """Whether some environment has `length` consecutive steps stored."""
        return bool((self.count >= length).any())

    def state_dict(self) -> dict[str, Any]:
        """Everything held; only rows that were ever written."""
        state = state_of(self, "stored", "cursor", "count", "random", "single")
        if self.arrays is not None:
            used = min(self.capacity, int(self.count.max()) + 1)
            state["rows"] = {k: tree.index(getattr(self.arrays, k), slice(0, used)) for k in STORED}
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave."""
        if "rows" in state:
            rows = state["rows"]
            self._allocate(Experience(**rows, final_observation=None, replaced=None))
            for name in STORED:
                part = getattr(self.arrays, name)
                tree.write(part, slice(0, len(rows["reward"])), rows[name])
        restore(self, state, "stored", "cursor", "count", "random", "single")
