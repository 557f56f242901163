"""The architecture on one page: who may call whom, and with what.

    chunk = explorer.update()   # an Explorer steps an EnvironmentManager with an Agent's actions
    memory.store(chunk)         # a Memory keeps the Experience
    metrics = agent.update()    # the Agent learns what is due

Tensors are `[B, ...]` for one moment of B environments, `[T, B, ...]` over time. Observations and
actions are dicts by name. Everything with state has `state_dict` and `load_state_dict`, whose
values are tensors, arrays and plain numbers: saving them is enough to go on bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol, Self

from torch import Generator, Tensor, nn

from operant.core.experience import (
    Arrays,
    Decision,
    EnvStep,
    Experience,
    HiddenState,
    Metrics,
    Tensors,
    TrajInfo,
)
from operant.core.spaces import Shape, Space, Spaces


class Stateful(Protocol):
    """Anything that a checkpoint must hold."""

    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any]) -> object: ...


class EnvironmentManager(Stateful, Protocol):
    """B environments as one. The arrays it returns may be overwritten by its next step."""

    spaces: Spaces
    num_envs: int
    frames_per_step: int  # simulator frames behind one step

    @property
    def exact(self) -> bool: ...  # whether `state_dict` is enough to go on bit for bit
    def reset(self, seed: int | None = None) -> Arrays: ...
    def step(self, actions: Arrays) -> EnvStep: ...
    def close(self) -> None: ...


class Network(Stateful, Protocol):
    """Observations to named outputs: an `nn.Module`.

    One moment: `forward(observation [B, ...], hidden_state)`. A sequence: the same with
    `[T, B, ...]` and `first` `[T, B]`, which resets the state where an episode
    begins. `outputs` names what is wanted, all by default. Returns the outputs and the state
    carried out. `observe` lets it normalise by what it has seen.
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


class NetworkMaker(Protocol):
    """Makes a Network (an `nn.Module`) from observations to outputs of these shapes.

    `late` inputs join after whatever remembers, so that they leave no trace in the hidden state.
    """

    def __call__(
        self,
        inputs: Mapping[str, Space],
        outputs: Mapping[str, Shape],
        late: Mapping[str, Space] | None = None,
    ) -> Any: ...


class Memory(Stateful, Protocol):
    """Where experience is kept: an experience cache."""

    def store(self, chunk: Experience) -> None: ...
    def ready(self) -> bool: ...


class Acting(Protocol):
    """Whatever chooses actions `[B, ...]`."""

    def act(
        self, observation: Tensors, hidden_state: HiddenState | None = None, explore: bool = True
    ) -> Decision: ...


class Rows(NamedTuple):
    """Which rows of a larger batch an actor is given."""

    start: int
    stop: int
    total: int


class Actor(Acting, Stateful, Protocol):
    """The acting half of an agent, which can be copied and sent to another process."""

    generator: Generator
    acted: int  # steps of the whole batch, while exploring
    rows: Rows | None  # what it is given of the batch; None: all


class Agent(Acting, Stateful, Protocol):
    """Acts, and learns from what its memory holds."""

    memory: Any

    @property
    def network(self) -> Any: ...
    def initial_state(self, batch_size: int) -> HiddenState: ...
    def update(self) -> Metrics: ...


class PortableAgent(Agent, Protocol):
    """An agent whose acting half can go elsewhere."""

    @property
    def actor(self) -> Actor: ...
    @property
    def updates(self) -> int: ...  # gradient steps so far


class Sampler(Stateful, Protocol):
    """How acting and stepping are laid over processes."""

    seconds: dict[str, float]  # by activity, until somebody sets them to zero
    metrics: Metrics  # of the last batch

    @property
    def manager(self) -> EnvironmentManager: ...
    @property
    def cache(self) -> Any: ...  # a RolloutCache, at the row that will be acted on next
    @property
    def tracker(self) -> Any: ...  # a TrajTracker
    def obtain_samples(self, itr: int) -> tuple[Experience, list[TrajInfo]]: ...
    def evaluate_agents(self, itr: int) -> list[TrajInfo]: ...
    def close(self) -> None: ...


BaseSampler = Sampler  # rlpyt's name


class Container(Stateful, Protocol):
    """All application state of one process."""

    local_step_count: int

    def run(self, nb_step: int, initial_step: int = 0) -> Self: ...
