"""The acting half of an agent: all that a process which only collects needs of it."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
import torch
from torch import Generator, Tensor

from operant.agents.sequence import substate
from operant.core import tree
from operant.core.experience import Arrays, Decision, HiddenState, Memo, Tensors
from operant.core.protocols import Network, Rows
from operant.networks.numpy_forward import ROWS, FewRows, few_rows
from operant.ops.distribution import masks_of


class Choice(Protocol):
    """How actions follow from what the network gives; rows are independent of each other."""

    def explore(
        self, out: Tensors, masks: Tensors, generator: Generator, acted: int
    ) -> Tensors: ...
    def exploit(self, out: Tensors, masks: Tensors) -> Tensors: ...
    def memo(self, out: Tensors, action: Tensors, masks: Tensors) -> Tensors: ...


@runtime_checkable
class FewChoice(Protocol):
    """A choice that can also be made in NumPy, where no action is masked."""

    @property
    def drawable(self) -> bool: ...
    def explore_few(
        self, out: Arrays, generator: Generator, rows: tuple[int, int, int], acted: int
    ) -> tuple[Arrays, Arrays]: ...


class Actor:
    """A network, the choice of an action, and the random numbers that exploring takes.

    Given only some `rows` of a batch it draws for the whole batch and keeps its own, so that an
    environment's actions do not depend on how the batch is laid over processes. `follow` gives
    what else must be carried on after acting; `prefix` names the network's own hidden state.
    """

    def __init__(
        self,
        network: Network,
        choice: Choice,
        names: tuple[str, ...],
        seed: int,
        prefix: str = "",
        follow: Callable[[Tensors, HiddenState, Tensors], Tensors] | None = None,
    ) -> None:
        self.network, self.choice, self.names = network, choice, names
        self.prefix, self.follow = prefix, follow
        self.device = next(network.parameters()).device
        # All of what costs nothing more; and a value that remembers must see what is acted on, or
        # its memory falls behind.
        self.wanted = None if (network.joint or network.recurrent) and follow is None else names
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self._few = self._find_few()
        self.acted = 0  # steps of the whole batch, while exploring
        self.rows: Rows | None = None

    def act(
        self, observation: Tensors, hidden_state: HiddenState | None = None, explore: bool = True
    ) -> Decision:
        """Actions `[B, ...]` by name, and what acting leaves behind."""
        if explore and self._few is not None and not masks_of(observation, self.names):
            return self._act_few(*self._few, observation)
        return self._act(observation, hidden_state, explore)

    @torch.no_grad()
    def _act(
        self, observation: Tensors, hidden_state: HiddenState | None, explore: bool
    ) -> Decision:
        observation = tree.to(observation, self.device)
        state = HiddenState() if hidden_state is None else tree.to(hidden_state, self.device)
        out, carried = self._forward(observation, state)
        masks = masks_of(observation, self.names)
        action = self._explore(out, masks) if explore else self.choice.exploit(out, masks)
        memo = self.choice.memo(out, action, masks)
        if self.prefix:
            carried = HiddenState({f"{self.prefix}.{k}": x for k, x in carried.items()})
        if self.follow is not None:
            carried.update(self.follow(observation, state, action))
        return tree.map(Tensor.cpu, action), Memo(memo, carried)

    def _find_few(self) -> tuple[FewRows, FewChoice] | None:
        """The network in NumPy and the choice that goes with it, if both allow that."""
        choice = self.choice
        if self.follow is not None or not isinstance(choice, FewChoice) or not choice.drawable:
            return None
        network = few_rows(self.network, self.wanted)
        return None if network is None else (network, choice)

    def _act_few(self, network: FewRows, choice: FewChoice, observation: Tensors) -> Decision:
        out = network(observation)
        count = len(next(iter(out.values())))
        rows = self.rows or (0, count, count)
        action, memo = choice.explore_few(out, self.generator, rows, self.acted)
        self.acted += rows[2]
        tensors = {name: torch.from_numpy(x) for name, x in action.items()}
        return tensors, Memo({k: torch.from_numpy(x) for k, x in memo.items()}, HiddenState())

    def _forward(self, observation: Tensors, state: HiddenState) -> tuple[Tensors, HiddenState]:
        state = substate(state, self.prefix)
        count = len(next(iter(observation.values())))
        alone = (count if self.rows is None else self.rows.total) == 1
        if alone or count % ROWS == 0:
            return self.network(observation, state, None, self.wanted)
        repeated = torch.arange(-(-count // ROWS) * ROWS, device=self.device) % count
        seen, state = tree.index(observation, repeated), tree.index(state, repeated)
        out, carried = self.network(seen, state, None, self.wanted)
        return tree.index((out, carried), slice(0, count))

    def _explore(self, out: Tensors, masks: Tensors) -> Tensors:
        if self.rows is None:
            action = self.choice.explore(out, masks, self.generator, self.acted)
            self.acted += len(next(iter(action.values())))
            return action
        start, stop, total = self.rows
        out, masks = tree.map(lambda x: _among(x, self.rows), (out, masks))
        action = self.choice.explore(out, masks, self.generator, self.acted)
        self.acted += total
        return tree.index(action, slice(start, stop))

    def carried(self) -> Arrays:
        """What acting carries on besides weights: counts and the state of random generators."""
        return {
            "generator": self.generator.get_state().cpu().numpy(),
            "acted": np.array([self.acted], np.int64),
        }

    def carry_on(self, carried: Arrays) -> None:
        """Go on from what `carried` gave, or from as much of it as is there."""
        if "generator" in carried:
            self.generator.set_state(torch.from_numpy(carried["generator"].copy()))
        if "acted" in carried:
            self.acted = int(carried["acted"][0])

    state_dict, load_state_dict = carried, carry_on

    def portable(self) -> Self:
        """Itself, or where it lives on another device, one that draws on the CPU."""
        if self.generator.device.type == "cpu":
            return self
        twin = copy(self)
        twin.generator = torch.Generator().manual_seed(self.generator.initial_seed())
        return twin

    def __getstate__(self) -> dict[str, Any]:
        """For another process: a generator cannot be sent, its state can."""
        return {**self.__dict__, "generator": self.generator.get_state(), "_few": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.device = next(self.network.parameters()).device
        self.generator = torch.Generator(self.device)
        self.generator.set_state(state["generator"])
        self._few = self._find_few()


def _among(x: Tensor, rows: Rows | None) -> Tensor:
    """`x` in its place among the rows of the whole batch; the others are zero, for nobody."""
    assert rows is not None
    whole = x.new_zeros((rows.total, *x.shape[1:]))
    whole[rows.start : rows.stop] = x
    return whole
