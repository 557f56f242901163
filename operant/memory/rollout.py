"""The last T steps of B environments, and the verbs by which they get there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import torch

from operant.core import tree
from operant.core.errors import UsageError
from operant.core.experience import Arrays, EnvStep, Experience, HiddenState, Memo, Tensors
from operant.core.protocols import Memory
from operant.core.spaces import AGENT_FIELDS

SEEN = ("observation", "hidden_state", "first")  # fields with one row more than the others
Allocate = Callable[[tuple[int, ...], np.dtype[Any]], tree.Array]


class Channel(Protocol):
    """What carries chunks from an actor to a learner: any queue."""

    def put(self, item: Experience) -> None: ...
    def get(self) -> Experience: ...


class RolloutCache:
    """A chunk of `length` steps, allocated once and written in place.

    Step by step: `agent_write` and `env_write` in turn, or `write`, until it is `ready`. Whole:
    `store(chunk)`, which keeps the chunk itself, not a copy. `read` gives the chunk, valid until
    the next write; `clear` makes room for the next one, which begins where this one ended.
    """

    def __init__(self, length: int, channel: Channel | None = None) -> None:
        self.length, self.channel = length, channel
        self.cursor = 0
        self.chunk: Experience | None = None
        self.arrays: Any = None  # the chunk this cache allocated, as NumPy sees it
        self.rows: list[Tensors] = []  # its observations by row, as torch sees them

    def start(self, observation: Arrays, action: Tensors, memo: Memo, agents: int = 0) -> None:
        """Allocate for such rows and begin with `observation`, the first of new episodes."""
        self.adopt(laid_out(rows_like(observation, action, memo, agents), self.length))
        self.begin(observation)

    def adopt(self, arrays: Experience) -> None:
        """Write into these arrays, `[T, B, ...]`, from now on."""
        self.arrays = arrays
        self.chunk = tree.tensors(arrays)
        seen = self.chunk.observation
        self.rows = [{k: x[t] for k, x in seen.items()} for t in range(self.length + 1)]
        self.cursor = 0

    def begin(self, observation: Arrays) -> None:
        """Go on with `observation`, the first of new episodes."""
        tree.write(self.arrays.observation, self.cursor, tree.map(np.asarray, observation))
        self.arrays.first[self.cursor] = True

    def observation(self) -> Tensors:
        """What to act on now."""
        return self.rows[self.cursor]

    def hidden_state(self) -> HiddenState:
        """The recurrent state to act with now: fresh where an episode begins."""
        chunk = self.read()
        if not chunk.hidden_state:
            return HiddenState()
        state = HiddenState(tree.index(chunk.hidden_state, self.cursor))
        return state.reset(chunk.first[self.cursor])

    def agent_write(self, action: Tensors, memo: Memo) -> None:
        """What was decided at this step and what deciding left behind."""
        t, arrays = self.cursor, self.arrays
        for name, x in action.items():
            arrays.action[name][t] = x.cpu().numpy()
        for name, x in memo.tensors.items():
            arrays.memo[name][t] = x.cpu().numpy()
        for name, x in memo.hidden_state.items():
            arrays.hidden_state[name][t + 1] = x.cpu().numpy()

    def env_write(self, step: EnvStep, reward: tree.Array | None = None) -> None:
        """What came of it; moves on to the next step. `reward` replaces the step's, if given."""
        t, arrays = self.cursor, self.arrays
        arrays.reward[t] = step.reward if reward is None else reward
        arrays.terminated[t] = step.terminated
        arrays.truncated[t] = step.truncated
        arrays.valid[t] = step.valid
        for name, x in step.observation.items():
            arrays.observation[name][t + 1] = x
        if step.final_observation is None:
            arrays.replaced[t] = False
        else:
            ended = step.terminated | step.truncated
            arrays.replaced[t] = ended
            for name, x in step.final_observation.items():
                arrays.final_observation[name][t][ended] = x[ended]
        if step.agents is not None:
            tree.write(arrays.agents, t, step.agents)
        np.logical_or(arrays.replaced[t], ~step.valid, out=arrays.first[t + 1])
        self.cursor += 1

    def write(self, observation: Arrays, action: Tensors, memo: Memo, step: EnvStep) -> None:
        """One whole step: what was seen, decided and answered; see `differs` for resets by hand."""
        _check_kept(observation, step)
        if self.ready():
            self.clear()
        if self.arrays is None:
            self.start(observation, action, memo, agent_count(step))
        self._begin_where(self.differs(observation), observation)
        self.agent_write(action, memo)
        self.env_write(step)

    def differs(self, observation: Arrays) -> tree.Array:
        """Where `observation` `[B, ...]` is not what the last step led to: it was reset by hand."""
        if self.arrays is None:
            return np.array([False])
        shown = tree.index(self.arrays.observation, self.cursor)
        pairs = [(np.asarray(observation[name], x.dtype), x) for name, x in shown.items()]
        found: tree.Array = np.any([(a != b).reshape(len(b), -1).any(1) for a, b in pairs], axis=0)
        return found

    def _begin_where(self, begun: tree.Array, observation: Arrays) -> None:
        """Begin episodes by hand; those before them count as truncated unless they had ended."""
        if not begun.any():
            return
        t, arrays = self.cursor, self.arrays
        if t > 0:
            broken_off = begun & arrays.valid[t - 1] & ~arrays.replaced[t - 1]
            for name, x in arrays.observation.items():
                arrays.final_observation[name][t - 1][broken_off] = x[t][broken_off]
            arrays.replaced[t - 1] |= broken_off
            arrays.truncated[t - 1] |= broken_off & ~arrays.terminated[t - 1]
        for name, x in arrays.observation.items():
            x[t][begun] = np.asarray(observation[name])[begun]
        arrays.first[t] |= begun

    def ready(self) -> bool:
        """Whether a whole chunk can be read."""
        return self.cursor == self.length

    def read(self) -> Experience:
        """The chunk, without a copy."""
        assert self.chunk is not None, "nothing was written"
        return self.chunk

    def store(self, chunk: Experience) -> None:
        """Hold `chunk` itself until `clear`; what was being written is let go."""
        self.chunk, self.arrays, self.cursor = chunk, None, self.length

    def clear(self) -> None:
        """Make room: the row after the last step becomes the first."""
        if self.arrays is not None and self.cursor > 0:
            self.go_on_from(self)
        self.cursor = 0

    def go_on_from(self, other: RolloutCache) -> None:
        """Begin with the row at which `other` stands."""
        for field in SEEN:
            row = tree.index(getattr(other.arrays, field), other.cursor)
            tree.write(getattr(self.arrays, field), 0, row)
        self.cursor = 0

    def submit(self) -> None:
        """Send a copy of the chunk through the channel, and clear."""
        assert self.channel is not None, "this cache has no channel to submit to"
        self.channel.put(tree.map(torch.clone, self.read()))
        self.clear()

    def receive(self) -> Experience:
        """Take the next chunk from the channel, waiting for it, and hold it."""
        assert self.channel is not None, "this cache has no channel to receive from"
        self.store(self.channel.get())
        return self.read()

    def state_dict(self) -> dict[str, Any]:
        """What is needed to go on: the rows written so far, or only the last of a full chunk."""
        if self.arrays is None:
            return {}
        begin, end = (self.cursor, self.cursor) if self.ready() else (0, self.cursor)
        seen = {k: tree.index(getattr(self.arrays, k), slice(begin, end + 1)) for k in SEEN}
        rest = {
            k: tree.index(v, slice(begin, end))
            for k, v in self.arrays.items()
            if k not in SEEN and v is not None
        }
        return {k: tree.map(np.copy, v) for k, v in (seen | rest).items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave."""
        if not state:
            return
        saved = Experience(**state)
        if self.arrays is None:
            rows = tree.map(lambda x: np.empty(x.shape[1:], x.dtype), saved)
            self.adopt(laid_out(rows, self.length))
        self.cursor = len(saved.reward)
        for name, part in saved.items():
            rows = self.cursor + (name in SEEN)
            tree.write(getattr(self.arrays, name), slice(0, rows), part)


RolloutBuffer = RolloutCache  # its other name
ExperienceCache = Memory  # adept's name


def agent_count(step: EnvStep) -> int:
    """How many agents a step is of, if it tells of several; else zero."""
    return 0 if step.agents is None else int(step.agents["reward"].shape[-1])


def rows_like(observation: Arrays, action: Tensors, memo: Memo, agents: int = 0) -> Experience:
    """One row `[B, ...]` of a chunk that holds such observations and decisions of so many agents.

    Zero agents: the record has no field for several.
    """
    shown = tree.map(np.asarray, observation)
    numbers = np.zeros(len(next(iter(shown.values()))), dtype=np.float32)
    flags = numbers.astype(bool)
    return Experience(
        observation=shown,
        hidden_state=_numpy(dict(memo.hidden_state)),
        first=flags,
        action=_numpy(action),
        memo=_numpy(memo.tensors),
        reward=numbers,
        terminated=flags,
        truncated=flags,
        valid=flags,
        final_observation=shown,
        replaced=flags,
        agents={k: np.zeros((len(flags), agents), x) for k, x in AGENT_FIELDS.items()}
        if agents
        else None,
    )


def laid_out(
    rows: Experience, length: int, envs: int | None = None, allocate: Allocate = np.zeros
) -> Experience:
    """Arrays for a chunk `[length, envs]` of rows such as these; None: as many as those are for."""
    envs = len(rows.reward) if envs is None else envs
    # Untouched pages of zeros cost no memory: final observations take what is written.
    return Experience(
        *(
            tree.map(
                lambda x, n=length + (k in SEEN): allocate((n, envs, *x.shape[1:]), x.dtype), v
            )
            for k, v in rows.items()
        )
    )


def _check_kept(observation: Arrays, step: EnvStep) -> None:
    """Refuse an observation whose memory the step has reused: what was acted on is lost."""
    for name, x in observation.items():
        if np.may_share_memory(np.asarray(x), step.observation[name]):
            raise UsageError(f"observation {name!r} was overwritten by the step; copy it before")


def _numpy(tensors: Tensors) -> Arrays:
    return {name: x.detach().cpu().numpy() for name, x in tensors.items()}
