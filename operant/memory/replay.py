"""A ring of past experience, read in windows of consecutive steps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from torch import Tensor

from operant.core import tree
from operant.core.errors import UsageError
from operant.core.experience import Arrays, Drawn, EnvStep, Experience, Memo, Tensors
from operant.core.spaces import AGENTS
from operant.core.state import restore, state_of
from operant.core.tree import Array
from operant.memory import storage
from operant.memory.frames import Frames, frame_rows
from operant.memory.ring import Ring
from operant.memory.rollout import Allocate, RolloutCache

SEEN = ("observation", "hidden_state", "first")
STEPS = ("action", "memo", "reward", "terminated", "truncated", "valid")
STATE = ("stored", "written", "count", "random", "single")
ATTEMPTS = 1000  # to draw a valid step, where about half or more of the rows are


class ExperienceReplay:
    """The last `size` steps, `[rows, B]`, each environment's episodes one after another.

    An episode is followed by one row that is not `valid` and holds its final observation, so the
    row after a step always shows what the step led to: no observation is stored twice, and none
    is ever taken from after a reset. The row at the cursor holds what the next action will see.
    Of observations that are `stacked`, rows hold numbers, and `frames` what they stand for.
    """

    def __init__(
        self,
        size: int,
        min_size: int,
        seed: int,
        *,
        stacked: Sequence[str] = (),
        allocate: Allocate = np.zeros,
        compress: bool = True,
    ) -> None:
        self.size, self.min_size = size, max(1, min_size)
        self.stacked, self.allocate = tuple(stacked), allocate
        # What does not fit in memory is not compressed there either.
        self.save = partial(storage.saved, compress=compress, directory=storage.where(allocate))
        self.random = np.random.default_rng(seed)
        self.stored = 0  # valid steps ever stored
        # By environment: rows ever written, the row to write next, rows held before it.
        self.written = self.cursor = self.count = np.zeros(0, dtype=np.int64)
        self.ring: Ring | None = None
        self.frames: dict[str, Frames] = {}
        self.single = RolloutCache(1)

    def store(self, chunk: Experience) -> None:
        """Append a chunk with one vectorised write."""
        part = tree.numpy(chunk)
        steps, envs = part.reward.shape
        self._check_room(steps, envs)
        if self.ring is None:
            self.frames = {name: self._make_frames(name, part) for name in self.stacked}
        for frames in self.frames.values():
            part = frames.store(part)
        told = STEPS if part.agents is None else (*STEPS, AGENTS)
        if self.ring is None:
            self._allocate({k: getattr(part, k) for k in (*SEEN, *told)}, envs)
        # A step that was followed by a reset at once leaves a row for its final observation.
        extra = np.zeros((steps + 1, envs), np.int64)
        reset = bool(part.replaced.any())
        if reset:
            part.replaced.cumsum(axis=0, out=extra[1:])
        columns = np.arange(envs)
        rows = (self.cursor + np.arange(steps + 1)[:, None] + extra) % self.capacity
        for name in SEEN:
            tree.write(self.fields[name], (rows, columns), getattr(part, name))
        for name in told:
            tree.write(self.fields[name], (rows[:steps], columns), getattr(part, name))
        if reset:
            t, b = part.replaced.nonzero()
            final, state = (part.final_observation, (t, b)), (part.hidden_state, (t + 1, b))
            self._write_end(((rows[t, b] + 1) % self.capacity, b), final, state)
        advance = steps + extra[steps]
        self.written = self.written + advance
        self.cursor = rows[steps]
        self.count = self._held(self.count + advance)
        self.stored += int(np.count_nonzero(part.valid))

    def _check_room(self, steps: int, envs: int) -> None:
        check_room(self.size, steps, envs)
        for frames in self.frames.values():
            if frames.capacity < frame_rows(0, frames.depth, steps):
                raise UsageError(
                    f"replay_size = {self.size}: the first chunk had fewer than {steps} steps, and "
                    f"no room was kept for the frames of longer ones; store chunks of one length"
                )

    def _make_frames(self, name: str, part: Experience) -> Frames:
        stacks = part.observation[name]
        steps, envs = part.reward.shape
        capacity = frame_rows(ring_rows(self.size, envs), stacks.shape[2], steps)
        return Frames(name, stacks.shape[1:], stacks.dtype, capacity, self.allocate)

    def _allocate(self, example: dict[str, Any], envs: int) -> Ring:
        self.capacity = ring_rows(self.size, envs)
        self.ring = Ring(example, self.capacity, envs, self.allocate)
        self.fields = self.ring.fields
        self.written, self.cursor, self.count = np.zeros((3, envs), dtype=np.int64)
        return self.ring

    def _held(self, count: Array) -> Array:
        """How many of the last `count` rows are whole."""
        count = np.minimum(count, self.capacity - 1)
        for name, frames in self.frames.items():
            # Episodes so short that there are many more frames than rows: the oldest are gone.
            numbers = self.fields["observation"][name]
            while (
                gone := numbers[self.cursor - count, np.arange(len(count))] < frames.oldest
            ).any():
                count = count - gone
        return count

    def _write_end(self, at: Any, seen: tuple[Any, Any], state: tuple[Any, Any]) -> None:
        """Rows in which an episode's end was seen but nothing decided."""
        tree.write(self.fields["observation"], at, tree.index(*seen))
        tree.write(self.fields["hidden_state"], at, tree.index(*state))
        for name in ("first", "terminated", "truncated", "valid", "reward"):
            self.fields[name][at] = 0
        for x in self.fields.get(AGENTS, {}).values():
            x[at] = 0

    def sample(self, batch_size: int, length: int = 1) -> Drawn:
        """`batch_size` windows of `length` steps: an Experience `[length, batch]`, and its places.

        Each window begins with a valid step. `hidden_state` has its first row only, and what an
        action led to is always the next row of `observation`.
        """
        if self.ring is None:
            raise no_start(length, self.size)
        places, weight = self._draw(batch_size, length)
        return Drawn(self.windows(places, length), weight, places)

    def newest(self, length: int) -> Experience:
        """The last `length` rows of every environment, `[length, B]`, as `sample` gives windows.

        Where an episode ended, one of them shows its final observation and is not valid.
        """
        if self.ring is None or self.count.min() < length:
            raise no_start(length, self.size)
        rows = (self.cursor - length) % self.capacity
        return self.windows(rows * len(rows) + np.arange(len(rows)), length)

    def held(self) -> int:
        """Valid steps that can be drawn."""
        if self.ring is None:
            return 0
        valid, envs = self.fields["valid"], np.arange(len(self.count))
        # The row at the cursor is no step yet, whatever it was before.
        return int(np.count_nonzero(valid) - np.count_nonzero(valid[self.cursor, envs]))

    def starts(self, length: int = 1) -> Array:
        """All places where windows of `length` steps begin with a valid step, oldest first."""
        if self.ring is None:
            return np.zeros(0, np.int64)
        ages = np.arange(self.capacity)[:, None]  # steps from the oldest row held
        rows = (self.cursor - self.count + ages) % self.capacity
        columns = np.broadcast_to(np.arange(len(self.count)), rows.shape)
        begin = (ages <= self.count - length) & self.fields["valid"][rows, columns]
        places: Array = (rows * len(self.count) + columns)[begin]
        return places

    def windows(self, places: Array, length: int) -> Experience:
        """The windows of `length` steps that begin in these places."""
        assert self.ring is not None
        envs = len(self.count)
        rows = places + np.arange(0, (length + 1) * envs, envs)[:, None]
        counts = dict.fromkeys((*STEPS, AGENTS), length)
        taken = self.ring.read(rows, {**counts, "hidden_state": 1})
        for name, frames in self.frames.items():
            numbers = taken["observation"][name].numpy()
            taken["observation"][name] = frames.read(numbers, rows % envs)
        return Experience(**taken, final_observation=None, replaced=None)

    def _draw(self, batch_size: int, length: int) -> tuple[Array, Tensor | None]:
        """Places where windows begin, a row times B plus an environment; and their weights."""
        starts = np.cumsum(np.maximum(self.count - length + 1, 0))
        if starts[-1] == 0:
            raise no_start(length, self.size)
        places = np.zeros(batch_size, dtype=np.int64)
        open_ = np.arange(batch_size)
        for _ in range(ATTEMPTS):
            if not len(open_):
                return places, None
            drawn = self.random.integers(starts[-1], size=len(open_))
            column = np.searchsorted(starts, drawn, side="right")
            behind = starts[column] - drawn + length - 1  # steps from the cursor back to the start
            row = (self.cursor[column] - behind) % self.capacity
            places[open_] = row * len(starts) + column
            open_ = open_[~self.fields["valid"][row, column]]
        raise no_start(length, self.size)

    def prioritize(self, place: Array | Tensor, error: Tensor) -> None:
        """How wrong the agent was about what it drew from `place`; drawing uniformly, no matter."""

    def write(self, observation: Arrays, action: Tensors, memo: Memo, step: EnvStep) -> None:
        """One whole step: what was seen, decided and answered.

        Where `observation` is not what the step before led to, the environment was reset by hand:
        a row that is not valid closes the episode before, as in next-step autoreset.
        """
        begun = self.single.differs(observation)
        if begun.any():
            self._close_episodes(begun, observation)
        self.single.write(observation, action, memo, step)
        self.store(self.single.read())

    def _close_episodes(self, begun: Array, observation: Arrays) -> None:
        single, no = self.single, np.zeros_like(begun)
        single.clear()
        first, written, count = single.arrays.first[0].copy(), self.written, self.count
        closed = begun & ~first  # an episode of which no step was taken leaves no row
        agents = tree.map(np.zeros_like, tree.index(single.arrays.agents, 0))
        numbers = no.astype(np.float32)
        single.env_write(EnvStep(observation, numbers, no, no, no, None, {}, agents))
        self.store(single.read())
        single.arrays.first[1] = first | begun
        # The other environments take their row back; the step that follows writes over it.
        self.written = np.where(closed, self.written, written)
        self.count = np.where(closed, self.count, count)
        self.cursor = self.written % self.capacity

    @property
    def rows(self) -> int:
        """Rows ever written of every environment: its steps, and a row after each episode."""
        return int(min(self.written, default=0))

    def ready(self) -> bool:
        """Whether enough was stored to learn from."""
        return self.stored >= self.min_size

    def holds(self, length: int) -> bool:
        """Whether some environment has `length` consecutive steps stored."""
        return bool((self.count >= length).any())

    def state_dict(self) -> dict[str, Any]:
        """Everything held; only rows that were ever written."""
        state = state_of(self, *STATE)
        if self.ring is not None:
            used = min(self.capacity, int(self.written.max()) + 1)
            state["rows"] = self.ring.state_dict(used, self.save)
            state["like"] = tree.map(lambda x: x[:0].copy(), self.fields)
            state["frames"] = {k: x.state_dict(self.save) for k, x in self.frames.items()}
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave."""
        if "rows" in state:
            self._allocate(state["like"], len(state["written"])).load_state_dict(state["rows"])
            self.frames = {
                k: Frames.from_state(k, x, self.allocate) for k, x in state["frames"].items()
            }
        restore(self, state, *STATE)
        if self.ring is not None:
            self.cursor = self.written % self.capacity


def ring_rows(size: int, envs: int) -> int:
    """Rows that hold `size` steps of `envs` environments, and what the next action will see."""
    return -(-size // envs) + 1


def check_room(size: int, steps: int, envs: int) -> None:
    """Refuse a replay too small for its chunks."""
    if ring_rows(size, envs) < 2 * steps + 2:  # every step may end an episode, and take two rows
        raise UsageError(
            f"replay_size = {size}: too small for chunks of {steps} steps of {envs} "
            f"environments; expected at least {(2 * steps + 1) * envs}"
        )


def no_start(length: int, size: int) -> UsageError:
    """What to say when nothing can be drawn."""
    return UsageError(
        f"the replay holds no {length} consecutive steps of which the first is valid; "
        f"collect more, or use a larger replay than {size} steps"
    )
