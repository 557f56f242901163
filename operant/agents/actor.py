"""The acting half of an agent: all that a process which only collects needs of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from typing import Any, Self, TypeVar

import numpy as np
import torch
from torch import Generator, Tensor

from operant.agents.modes import in_eval_mode, noisy_layers
from operant.core import tree
from operant.core.experience import Arrays, Decision, HiddenState, Memo, Tensors, substate
from operant.core.protocols import ROW_BLOCK, Network, NumpyForward, Rows
from operant.ops.distribution import Distribution, masks_of

T = TypeVar("T")
SELECTOR = "selector"  # of the selector's own state beside that of networks
Explored = tuple[Arrays, Arrays]  # actions by name, and what learning will need to know


class ActionSelector:
    """How actions follow from what the network gives; rows are independent of each other.

    What one carries from step to step, such as correlated noise, is part of the hidden state: so it
    is fresh where an episode begins, and the same however the rows are laid over processes.
    """

    in_numpy = False  # whether there is `explore_numpy`

    def __init__(self, names: Iterable[str], outputs: Iterable[str]) -> None:
        self.names, self.outputs = tuple(names), tuple(outputs)  # of actions, of the network

    def initial_state(self, batch_size: int) -> Tensors:
        """What it carries into the first step of an episode, zeros by name; nothing by default."""
        return {}

    def advance(self, state: Tensors, generator: Generator) -> Tensors:
        """What it carries into the next step; `explore` finds that beside the network's outputs."""
        return state

    def explore(self, out: Tensors, masks: Tensors, generator: Generator, acted: int) -> Tensors:
        """Actions while training, after so many environment steps."""
        raise NotImplementedError

    def exploit(self, out: Tensors, masks: Tensors) -> Tensors:
        """The best actions."""
        raise NotImplementedError

    def memo(self, out: Tensors, action: Tensors, masks: Tensors) -> Tensors:
        """What learning will need to know of the moment; nothing unless said otherwise."""
        return {}

    def explore_numpy(self, out: Arrays, generator: Generator, rows: Rows, acted: int) -> Explored:
        """`explore` and `memo` in NumPy, where no action is masked."""
        raise NotImplementedError


class PolicySelector(ActionSelector):
    """Samples from a stochastic policy, or takes its mode."""

    def __init__(self, distribution: Distribution) -> None:
        super().__init__(distribution.parts, distribution.outputs)
        self.distribution, self.in_numpy = distribution, distribution.in_numpy

    def explore(self, out: Tensors, masks: Tensors, generator: Generator, acted: int) -> Tensors:
        return self.distribution.sample(out, masks, generator)

    def exploit(self, out: Tensors, masks: Tensors) -> Tensors:
        return self.distribution.mode(out, masks)

    def memo(self, out: Tensors, action: Tensors, masks: Tensors) -> Tensors:
        """Log-probability of the action, and the value if the network gave it."""
        memo = {"log_prob": self.distribution.log_prob(out, action, masks)}
        return memo | ({"value": out["value"].squeeze(-1)} if "value" in out else {})

    def explore_numpy(self, out: Arrays, generator: Generator, rows: Rows, acted: int) -> Explored:
        action, log_prob = self.distribution.sample_numpy(out, generator, rows)
        assert log_prob is not None
        value = {"value": out["value"][:, 0]} if "value" in out else {}
        return action, {"log_prob": log_prob, **value}


class Actor:
    """A network, the selection of an action, and the random numbers that exploring takes.

    Given only some `rows` of a batch it draws for the whole batch and keeps its own, so that an
    environment's actions do not depend on how the batch is laid over processes. `prefix` names the
    network's own hidden state; `also_carry` gives what else must be carried on after acting.
    """

    def __init__(
        self,
        network: Network,
        selector: ActionSelector,
        seed: int,
        prefix: str = "",
        also_carry: Callable[[Tensors, HiddenState, Tensors], Tensors] | None = None,
    ) -> None:
        self.network, self.selector, self.names = network, selector, selector.names
        self.prefix, self.also_carry = prefix, also_carry
        self.device = next(network.parameters()).device
        self.mode_dependent = in_eval_mode(network)  # what gradient steps switch
        self.noisy = noisy_layers(network)
        # All of what costs nothing more; and a value that remembers must see what is acted on, or
        # its memory falls behind.
        free = (network.joint or network.recurrent) and also_carry is None
        self.outputs = None if free else selector.outputs
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self.numpy_forward = self._numpy_forward()
        self.acted = 0  # steps of the whole batch, while exploring
        self.rows: Rows | None = None

    def act(
        self, observation: Tensors, hidden_state: HiddenState | None = None, explore: bool = True
    ) -> Decision:
        """Actions `[B, ...]` by name, and what acting leaves behind."""
        if explore and self.numpy_forward is not None and not masks_of(observation, self.names):
            if self.numpy_forward.current():
                return self._act_in_numpy(self.numpy_forward, observation)
            self.numpy_forward = self._numpy_forward()
            return self.act(observation, hidden_state, explore)
        return self._act(observation, hidden_state, explore)

    @torch.no_grad()
    def _act(self, observation: Tensors, state: HiddenState | None, explore: bool) -> Decision:
        observation = tree.to(observation, self.device)
        state = HiddenState() if state is None else tree.to(state, self.device)
        for layer in self.noisy:  # one noise for all rows, in whichever process they are
            layer.redraw(self.generator) if explore else layer.still()
        out, carried = self._forward(observation, state)
        masks, own = masks_of(observation, self.names), self._selector_state(observation, state)
        if explore:
            action, own = self._explore(out, masks, own)
        else:
            action = self.selector.exploit(out, masks)
        memo = self.selector.memo(out | own, action, masks)
        if self.prefix:
            carried = HiddenState({f"{self.prefix}.{k}": x for k, x in carried.items()})
        carried.update({f"{SELECTOR}.{k}": x for k, x in own.items()})
        if self.also_carry is not None:
            carried.update(self._in_blocks(self.also_carry, observation, state, action))
        return tree.map(Tensor.cpu, action), Memo(memo, carried)

    def _numpy_forward(self) -> NumpyForward | None:
        """The network in NumPy, if it and the selection allow that."""
        if self.also_carry is not None or not self.selector.in_numpy:
            return None
        return self.network.numpy_forward(self.outputs)

    def _act_in_numpy(self, forward: NumpyForward, observation: Tensors) -> Decision:
        out = forward(observation)
        count = len(next(iter(out.values())))
        rows = self.rows or Rows(0, count, count)
        action, memo = self.selector.explore_numpy(out, self.generator, rows, self.acted)
        self.acted += rows.total
        tensors = {name: torch.from_numpy(x) for name, x in action.items()}
        return tensors, Memo({k: torch.from_numpy(x) for k, x in memo.items()}, HiddenState())

    def _forward(self, observation: Tensors, state: HiddenState) -> tuple[Tensors, HiddenState]:
        def forward(seen: Tensors, state: HiddenState) -> tuple[Tensors, HiddenState]:
            return self.network(seen, state, None, self.outputs)

        return self._in_blocks(forward, observation, substate(state, self.prefix))

    def _in_blocks(self, function: Callable[..., T], *inputs: Any) -> T:
        """What a function gives for these rows, as it rounds them among others."""
        count = len(next(iter(inputs[0].values())))
        alone = (count if self.rows is None else self.rows.total) == 1
        if alone or count % ROW_BLOCK == 0:
            return function(*inputs)
        repeated = torch.arange(-(-count // ROW_BLOCK) * ROW_BLOCK, device=self.device) % count
        kept: T = tree.index(function(*tree.index(inputs, repeated)), slice(0, count))
        return kept

    def _selector_state(self, observation: Tensors, state: HiddenState) -> Tensors:
        fresh = self.selector.initial_state(len(next(iter(observation.values()))))
        given = substate(state, SELECTOR)
        return {k: given.get(k, x.to(self.device)) for k, x in fresh.items()}

    def _explore(self, out: Tensors, masks: Tensors, own: Tensors) -> tuple[Tensors, Tensors]:
        """Actions, and the selector's own state after them."""
        rows = self.rows
        if rows is not None:  # in their place among the others, which are zero and not used
            out, masks, own = tree.map(lambda x: _among(x, rows), (out, masks, own))
        own = self.selector.advance(own, self.generator)
        action = self.selector.explore(out | own, masks, self.generator, self.acted)
        self.acted += len(next(iter(action.values())))
        if rows is None:
            return action, own
        part: tuple[Tensors, Tensors] = tree.index((action, own), slice(rows.start, rows.stop))
        return part

    def carried(self) -> Arrays:
        """What acting carries on besides weights and hidden state: counts, random generators."""
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
        return {**self.__dict__, "generator": self.generator.get_state(), "numpy_forward": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.device = next(self.network.parameters()).device
        self.generator = torch.Generator(self.device)
        self.generator.set_state(state["generator"])
        self.numpy_forward = self._numpy_forward()


def _among(x: Tensor, rows: Rows) -> Tensor:
    whole = x.new_zeros((rows.total, *x.shape[1:]))
    whole[rows.start : rows.stop] = x
    return whole
