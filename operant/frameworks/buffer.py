"""The buffers of seed 003: a user's own view of a replay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from operant.core.errors import UsageError
from operant.core.experience import Drawn, Experience, Tensors
from operant.core.schedule import Schedule
from operant.core.tree import Array
from operant.frameworks.arguments import STATE, plain_names
from operant.frameworks.episode import Step, episode_of, piece
from operant.memory.prioritized import PrioritizedReplay
from operant.memory.replay import ExperienceReplay

SampleMethod = str | Callable[["Buffer", int], Sequence[int]]
PLENTY = 2  # times a batch, from which on windows are drawn without listing them
METHODS = ("random_unique", "random", "all")
DEFAULT_ATTRIBUTES = ("state", "action", "reward", "next_state", "terminal", "*")


class Buffer:
    """The last `buffer_size` steps of the episodes that were stored.

    Rows lie in main memory; what is sampled goes to the device that is asked for.
    """

    def __init__(self, buffer_size: int = 1_000_000, buffer_device: str = "cpu") -> None:
        self.buffer_size = buffer_size
        torch.device(buffer_device)  # refuses what is no device
        self.memory = self._make()

    def _make(self) -> ExperienceReplay:
        return ExperienceReplay(self.buffer_size, 1, _seed())

    def store_episode(self, episode: Sequence[Step]) -> None:
        """Check a whole episode, and store it; only its last steps, if it is longer than that."""
        self.store_chunk(episode_of(episode).chunk)

    def store_chunk(self, chunk: Experience) -> None:
        """Store an episode `[T, 1]` that was checked."""
        if self.memory.ring is not None:
            _check_columns(chunk, self.memory)
        at_once = max(1, (self.buffer_size - 1) // 2)  # each step may end an episode
        for start in range(0, len(chunk.reward), at_once):
            self.memory.store(piece(chunk, start, start + at_once))

    def size(self) -> int:
        """Steps held."""
        return self.memory.held()

    def all_size(self) -> int:
        """Steps held by all processes: here, those of this one."""
        return self.size()

    def clear(self) -> None:
        """Forget everything."""
        self.memory = self._make()

    def example(self) -> Tensors:
        """The oldest state held, `[1, ...]` by name."""
        state: Tensors = columns_of(self.memory.windows(self.memory.starts()[:1], 1))["state"]
        return state

    def draw(self, batch_size: int, length: int = 1, method: SampleMethod = "random") -> Drawn:
        """At most as many windows of `length` steps as there are."""
        if method == "random" and self.memory.held() >= PLENTY * batch_size + length:
            return self.memory.sample(batch_size, length)  # which does not list all of them
        places = self._places(batch_size, self.memory.starts(length), method)
        return Drawn(self.memory.windows(places, length), None, places)

    def sample_batch(
        self,
        batch_size: int,
        concatenate: bool = True,
        device: str | torch.device = "cpu",
        sample_method: SampleMethod = "random_unique",
        sample_attrs: Sequence[str] | None = None,
        additional_concat_custom_attrs: Sequence[str] | None = None,
    ) -> tuple[int, tuple[Any, ...] | None]:
        """How many steps were sampled, and a column for each attribute; `(0, None)` when empty.

        `state`, `action` and `next_state` are dicts of tensors `[B, ...]`, numbers `[B, 1]`, and
        `*` all other attributes. Without `concatenate`, columns are lists of single steps.
        """
        starts = self.memory.starts()
        if not len(starts):
            return 0, None
        places = self._places(batch_size, starts, sample_method)
        return len(places), self._columns(places, concatenate, device, sample_attrs)

    def _places(self, batch_size: int, starts: Array, method: SampleMethod) -> Array:
        if callable(method):
            return starts[np.asarray(method(self, batch_size), np.int64)]
        if method == "all":
            return starts
        if method not in METHODS:
            raise UsageError(
                f"sample_method = {method!r}: expected {', '.join(METHODS)} or a function of the "
                f"buffer and the batch size that gives places"
            )
        if batch_size < 1:
            raise UsageError(f"batch_size = {batch_size}: expected at least 1")
        count = min(batch_size, len(starts))
        random = self.memory.random
        return starts[random.choice(len(starts), count, replace=method == "random")]

    def _columns(
        self,
        places: Array,
        concatenate: bool,
        device: str | torch.device,
        attributes: Sequence[str] | None,
    ) -> tuple[Any, ...]:
        found = columns_of(self.memory.windows(places, 1))
        asked = DEFAULT_ATTRIBUTES if attributes is None else attributes
        named = {name for name in asked if name != "*"}
        found["*"] = {k: x for k, x in found.items() if k not in named}
        unknown = [name for name in asked if name not in found]
        if unknown:
            raise UsageError(f"sample_attrs: no step has {unknown[0]!r}; there is {sorted(found)}")
        moved = [_moved(found[name], device) for name in asked]
        return tuple(moved if concatenate else (_split(x, len(places)) for x in moved))

    def state_dict(self) -> dict[str, Any]:
        """Everything held."""
        return self.memory.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave."""
        self.memory = self._make()
        self.memory.load_state_dict(state)


class PrioritizedBuffer(Buffer):
    """A buffer of which steps with large errors are sampled more often (arXiv:1511.05952)."""

    memory: PrioritizedReplay

    def __init__(
        self,
        buffer_size: int = 1_000_000,
        buffer_device: str = "cpu",
        epsilon: float = 1e-2,
        alpha: float = 0.6,
        beta: float = 0.4,
        beta_increment_per_sampling: float = 0.001,
    ) -> None:
        self.epsilon, self.alpha = epsilon, alpha
        self.beta, self.increment = beta, beta_increment_per_sampling
        super().__init__(buffer_size, buffer_device)

    def _make(self) -> PrioritizedReplay:
        beta = Schedule(self.beta)
        return PrioritizedReplay(self.buffer_size, 1, _seed(), self.alpha, beta)

    def draw(self, batch_size: int, length: int = 1, method: SampleMethod = "random") -> Drawn:
        """Windows by priority, and the weights of their losses; `beta` grows with each draw."""
        self.memory.beta = Schedule(self.beta)
        count = min(batch_size, self.memory.held())
        drawn = self.memory.sample(count, length)
        self.beta = min(1.0, self.beta + self.increment)
        return drawn

    def update_priority(self, priority: Tensor | Array, index: Array) -> None:
        """Set the priorities of steps that were drawn, by how wrong they were."""
        error = torch.as_tensor(priority, dtype=torch.float32).reshape(-1).abs()
        self.memory.prioritize(index, error + self.epsilon)

    def sample_batch(  # type: ignore[override]  # the contract has two results more
        self,
        batch_size: int,
        concatenate: bool = True,
        device: str | torch.device = "cpu",
        sample_attrs: Sequence[str] | None = None,
        additional_concat_custom_attrs: Sequence[str] | None = None,
    ) -> tuple[int, tuple[Any, ...] | None, Array | None, Array | None]:
        """As a `Buffer`'s, and the index of each step and its importance-sampling weight."""
        if not self.size():
            return 0, None, None, None
        drawn = self.draw(batch_size)
        assert drawn.weight is not None
        columns = self._columns(drawn.place, concatenate, device, sample_attrs)
        return len(drawn.place), columns, drawn.place, drawn.weight.numpy()


def columns_of(batch: Experience) -> dict[str, Any]:
    """The steps of a batch `[1, B]` under seed 003's names: dicts, numbers `[B, 1]`, and more."""
    seen = {k: x for k, x in batch.observation.items() if k.startswith(STATE)}
    return {
        "state": plain_names({k: x[0] for k, x in seen.items()}),
        "action": {k: x[0] for k, x in batch.action.items()},
        "next_state": plain_names({k: x[1] for k, x in seen.items()}),
        "reward": batch.reward[0].unsqueeze(-1),
        "terminal": batch.terminated[0].unsqueeze(-1),
        **{k: x[0].reshape(x.shape[1], -1) for k, x in batch.memo.items()},
    }


def _seed() -> int:
    """From torch's global generator, as the random numbers of a user's own modules are."""
    return int(torch.randint(2**31, ()))


def _moved(column: Any, device: str | torch.device) -> Any:
    if isinstance(column, dict):
        return {name: _moved(x, device) for name, x in column.items()}
    return column.to(device)


def _split(column: Any, count: int) -> list[Any]:
    """A column as a list of single steps, `[1, ...]` each."""
    if isinstance(column, dict):
        return [{name: x[i : i + 1] for name, x in column.items()} for i in range(count)]
    return [column[i : i + 1] for i in range(count)]


def _check_columns(chunk: Experience, memory: ExperienceReplay) -> None:
    """Refuse an episode with other columns than those before."""
    for field in ("observation", "action", "memo"):
        one, other = _shapes(getattr(chunk, field), 2), _shapes(memory.fields[field], 2)
        if one != other:
            raise UsageError(f"the episode's {field} is {one}; that of those before was {other}")


def _shapes(columns: Tensors, axes: int) -> dict[str, tuple[int, ...]]:
    return {name: tuple(x.shape[axes:]) for name, x in columns.items()}
