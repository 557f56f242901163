"""A module of the user's own, under the protocol of a network."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from operant.core.errors import UsageError
from operant.core.experience import HiddenState, Tensors
from operant.core.protocols import NumpyForward
from operant.core.spaces import Shape
from operant.networks.outputs import check_known


@runtime_checkable
class Observing(Protocol):
    """A module that keeps statistics of what it has seen."""

    def observe(self, observation: Tensors, valid: Tensor | None) -> object: ...


class CustomNetwork(nn.Module):
    """A module of your own: `forward(observation, hidden_state)` to `(outputs, hidden_state)`.

    It need only know one moment `[B, ...]`; a sequence is stepped through, or seen as one large
    batch if `state`, the shapes of the hidden state by name, is empty. Then its `forward` may do
    without the hidden state, as argument and as result.
    """

    joint = True  # the module gives all of its outputs

    def __init__(self, module: nn.Module, state: Mapping[str, Shape] | None = None) -> None:
        super().__init__()
        self.module = module
        self.state = dict(state or {})
        self.recurrent = bool(self.state)
        self.takes_state = _takes_state(module)

    def forward(
        self,
        observation: Tensors,
        hidden_state: HiddenState,
        first: Tensor | None = None,
        outputs: tuple[str, ...] | None = None,
    ) -> tuple[Tensors, HiddenState]:
        """The wanted outputs and the state carried out; a `first` of `[T, B]` means a sequence."""
        if first is None:
            return self._moment(observation, hidden_state, outputs)
        if first.dim() == 1:
            return self._moment(observation, hidden_state.reset(first), outputs)
        if self.recurrent:
            return self._unroll(observation, hidden_state, first, outputs)
        flat = {name: x.flatten(0, 1) for name, x in observation.items()}
        results, _ = self._moment(flat, hidden_state, outputs)
        return {name: y.unflatten(0, first.shape) for name, y in results.items()}, HiddenState()

    def initial_state(self, batch_size: int) -> HiddenState:
        """A fresh state for `batch_size` rows."""
        like = next(self.parameters(), torch.empty(0))
        return HiddenState(
            {name: like.new_zeros(batch_size, *shape) for name, shape in self.state.items()}
        )

    def observe(self, observation: Tensors, valid: Tensor | None = None) -> None:
        """Tell the module, if it has an `observe` of its own, which rows to take in."""
        if isinstance(self.module, Observing):
            self.module.observe(observation, valid)

    def numpy_forward(self, outputs: tuple[str, ...] | None) -> NumpyForward | None:
        """None: what the module computes is not known here."""
        return None

    def _moment(
        self, observation: Tensors, state: HiddenState, outputs: tuple[str, ...] | None
    ) -> tuple[Tensors, HiddenState]:
        given = self.module(observation, state) if self.takes_state else self.module(observation)
        results, carried = given if isinstance(given, tuple) else (given, {})
        if not isinstance(results, Mapping):
            raise UsageError(
                f"{type(self.module).__name__} returned a {type(results).__name__}; expected "
                f"outputs by name, or those and the hidden state"
            )
        if carried.keys() != self.state.keys():
            raise UsageError(
                f"{type(self.module).__name__} returned the hidden state {sorted(carried)}; "
                f"expected {sorted(self.state)}, the names in `state`"
            )
        wanted = results.keys() if outputs is None else outputs
        check_known(wanted, results)
        return {name: results[name] for name in wanted}, HiddenState(carried)

    def _unroll(
        self,
        observation: Tensors,
        state: HiddenState,
        first: Tensor,
        outputs: tuple[str, ...] | None,
    ) -> tuple[Tensors, HiddenState]:
        steps: list[Tensors] = []
        for t, begins in enumerate(first):
            now = {name: x[t] for name, x in observation.items()}
            results, state = self._moment(now, state.reset(begins), outputs)
            steps.append(results)
        return {name: torch.stack([step[name] for step in steps]) for name in steps[0]}, state


def _takes_state(module: nn.Module) -> bool:
    """Whether its `forward` has a second argument."""
    kinds = [p.kind for p in inspect.signature(module.forward).parameters.values()]
    one = inspect.Parameter
    many = (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    return one.VAR_POSITIONAL in kinds or sum(kind in many for kind in kinds) > 1
