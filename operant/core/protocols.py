"""The architecture on one page: who may call whom, and with what.

    chunk = explorer.update()   # an Explorer steps an EnvironmentManager with an Agent's actions
    memory.store(chunk)         # a Memory keeps the Experience
    metrics = agent.update()    # the Agent learns what is due

Tensors are `[B, ...]` for one moment of B environments, `[T, B, ...]` over time. Observations and
actions are dicts by name. Everything with state has `state_dict` and `load_state_dict`, whose
values are tensors, arrays and plain numbers: saving them is enough to go on bit for bit.

What only some managers can do is a protocol of its own, and is asked for by `isinstance`; it has
no other members, since Python reads all of them to answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol, Self, runtime_checkable

from torch import Generator, Tensor, nn

from operant.core.config import Config
from operant.core.experience import (
    Arrays,
    Decision,
    Drawn,
    EnvStep,
    Experience,
    HiddenState,
    Memo,
    Metrics,
    Tensors,
    TrajInfo,
)
from operant.core.spaces import Shape, Space, Spaces
from operant.core.tree import Array

ROW_BLOCK = 4  # multiples of so many rows round a row alike, on most processors


@runtime_checkable
class Stateful(Protocol):
    """Anything that a checkpoint must hold."""

    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any]) -> object: ...


# Environments


class EnvironmentManager(Stateful, Protocol):
    """B environments as one. The arrays it returns may be overwritten by its next step."""

    spaces: Spaces
    num_envs: int
    frames_per_step: int  # simulator frames behind one step

    @property
    def restarts(self) -> int: ...  # worker processes replaced so far
    @property
    def exact(self) -> bool: ...  # whether `state_dict` is enough to go on bit for bit
    def reset(self, seed: int | None = None) -> Arrays: ...
    def step(self, actions: Arrays) -> EnvStep: ...
    def close(self) -> None: ...


@runtime_checkable
class PausableManager(Protocol):
    """Can leave some environments as they are; their rows are then not valid."""

    def set_active(self, active: Array) -> None: ...  # bool [B]: which take the next steps


@runtime_checkable
class SplitStepManager(Protocol):
    """Its step has a beginning and an end, between which the caller can do something else."""

    def send(self, actions: Arrays) -> None: ...
    def receive(self) -> EnvStep: ...


@runtime_checkable
class PlacedManager(Protocol):
    """Knows its place in a larger batch: environment i is seeded with `seed + first + i`."""

    first: int


# Networks


class Network(Stateful, Protocol):
    """Observations to named outputs: an `nn.Module`.

    One moment: `forward(observation [B, ...], hidden_state)`. A sequence: the same with
    `[T, B, ...]` and `first` `[T, B]`, which resets the state where an episode begins. `outputs`
    names what is wanted, all by default. Returns the outputs and the state carried out. An
    ensemble's outputs have one more axis in front of the last, `[..., members, n]`.
    """

    recurrent: bool
    joint: bool  # whether one output costs as much as all of them

    def parameters(self, recurse: bool = True) -> Iterator[nn.Parameter]: ...
    def buffers(self, recurse: bool = True) -> Iterator[Tensor]: ...
    def requires_grad_(self, requires_grad: bool = True) -> Self: ...
    def __call__(
        self,
        observation: Tensors,
        hidden_state: HiddenState,
        first: Tensor | None = None,
        outputs: tuple[str, ...] | None = None,
    ) -> tuple[Tensors, HiddenState]: ...
    def initial_state(self, batch_size: int) -> HiddenState: ...
    def observe(self, observation: Tensors, valid: Tensor | None = None) -> None: ...
    def numpy_forward(self, outputs: tuple[str, ...] | None) -> NumpyForward | None: ...


class NumpyForward(Protocol):
    """A network's own faster form for acting on a few rows, without a gradient."""

    def __call__(self, observation: Tensors) -> Arrays: ...
    def current(self) -> bool: ...  # whether it still is what the network would compute


@runtime_checkable
class NoisyLayer(Protocol):
    """A module with noise in its weights, which stays the same until it is redrawn."""

    def redraw(self, generator: Generator) -> None: ...
    def still(self) -> None: ...  # take the noise away


# Memories


class Memory(Stateful, Protocol):
    """Where experience is kept: an experience cache."""

    def store(self, chunk: Experience) -> None: ...
    def ready(self) -> bool: ...

    # One step, in a loop of your own:
    def write(self, observation: Arrays, action: Tensors, memo: Memo, step: EnvStep) -> None: ...


class RolloutMemory(Memory, Protocol):
    """Holds one chunk, which is learned from and forgotten."""

    def read(self) -> Experience: ...
    def clear(self) -> None: ...


class ReplayMemory(Memory, Protocol):
    """Holds the last steps, of which windows are drawn."""

    stored: int  # valid steps ever stored

    @property
    def rows(self) -> int: ...  # rows ever written of every environment
    def holds(self, length: int) -> bool: ...  # whether a window of so many steps can be drawn
    def sample(self, batch_size: int, length: int = 1) -> Drawn: ...
    def newest(self, length: int) -> Experience: ...  # the last rows of every environment
    def prioritize(self, place: Array | Tensor, error: Tensor) -> None: ...


# Agents


class Rows(NamedTuple):
    """Which rows of a larger batch an actor is given."""

    start: int
    stop: int
    total: int


class Acting(Protocol):
    """Whatever chooses actions `[B, ...]`."""

    def act(
        self, observation: Tensors, hidden_state: HiddenState | None = None, explore: bool = True
    ) -> Decision: ...


class Actor(Acting, Stateful, Protocol):
    """The acting half of an agent, which can be copied and sent to another process.

    `carried` is all that acting carries on besides weights, such as counts and the state of random
    generators: arrays of fixed shapes. `carry_on` takes it up again, or as much of it as is given.
    """

    rows: Rows | None  # what it is given of the batch; None: all

    def carried(self) -> Arrays: ...
    def carry_on(self, carried: Arrays) -> None: ...
    def portable(self) -> Self: ...  # itself, or one that draws on the CPU


class Agent(Acting, Stateful, Protocol):
    """Acts, and learns from what its memory holds."""

    learned: list[Tensors]  # metrics of each gradient step of the last update

    @property
    def network(self) -> Network: ...  # that acts
    @property
    def memory(self) -> Any: ...  # a Memory
    @property
    def actor(self) -> Actor: ...
    @property
    def updates(self) -> int: ...  # gradient steps so far
    def initial_state(self, batch_size: int) -> HiddenState: ...
    def update(self) -> Metrics: ...
    def compile(self) -> None: ...  # learn by torch.compile from now on

    # One step, in a loop of your own:
    def observe(self, observation: Arrays, action: Tensors, memo: Memo, step: EnvStep) -> None: ...


class Parts(Protocol):
    """What an agent is made of, for the spaces of its environment: see `session/build.py`.

    `late` inputs join after whatever remembers, so that they leave no trace in the hidden state.
    `members` networks of their own weights are one ensemble. With `noisy`, fully connected layers
    have noise in their weights: see `NoisyLayer`.
    """

    spaces: Spaces

    def network(
        self,
        outputs: Mapping[str, Shape],
        late: Mapping[str, Space] | None = None,
        members: int = 1,
        noisy: bool = False,
    ) -> Network: ...
    def rollout(self, length: int) -> RolloutMemory: ...
    def replay(self, settings: Config, seed: int) -> ReplayMemory: ...


# The loop


class Sampler(Stateful, Protocol):
    """How acting and stepping are laid over processes."""

    seconds: dict[str, float]  # by activity, until somebody sets them to zero
    metrics: Metrics  # of the last batch

    @property
    def manager(self) -> EnvironmentManager: ...
    @property
    def episode_rewards(self) -> Array: ...  # [B]: sums so far in the episodes under way
    def hidden_state(self) -> HiddenState: ...  # that the next action will start from
    def obtain_samples(self, itr: int) -> tuple[Experience, list[TrajInfo]]: ...
    def evaluate_agents(self, itr: int) -> list[TrajInfo]: ...
    def close(self) -> None: ...


class Explorer(Stateful, Protocol):
    """A sampler in a mode."""

    finished: list[TrajInfo]  # episodes that ended during the last call

    @property
    def sampler(self) -> Sampler: ...
    def update(self) -> Experience: ...
    def play(self) -> list[TrajInfo]: ...


class Container(Stateful, Protocol):
    """All application state of one process, as a Runner drives it."""

    local_step_count: int  # environment steps so far

    @property
    def explorer(self) -> Explorer: ...
    @property
    def sampler(self) -> Sampler: ...
    @property
    def memory(self) -> Memory: ...
    @property
    def agent(self) -> Agent: ...
    @property
    def frames_per_step(self) -> int: ...
    def run(self, nb_step: int, initial_step: int = 0) -> Self: ...
    def stop(self) -> None: ...  # `run` returns after the update under way
    def drain(self) -> tuple[list[TrajInfo], Metrics]: ...  # since the last call
    def drain_seconds(self) -> dict[str, float]: ...
    def reasons(self) -> list[str]: ...  # why resuming is not bit for bit; empty: it is
    def close(self) -> None: ...
