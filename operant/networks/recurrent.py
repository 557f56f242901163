"""Parts that take features and remember: recurrent layers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from operant.core.errors import UsageError
from operant.core.experience import HiddenState, Tensors
from operant.core.spaces import Shape
from operant.networks.submodule import State, SubModule1D


class LSTM(SubModule1D):
    """Long short-term memory; its state is `h` (also its result) and `c`."""

    recurrent = True

    def __init__(self, input_shape: Shape, size: int = 512) -> None:
        super().__init__(input_shape)
        if size < 1:
            raise UsageError(f"LSTM: size {size}: expected at least 1")
        self.size = size
        self.core = nn.LSTM(input_shape[0], size)

    def _forward(self, x: Tensor, state: State, first: Tensor | None) -> tuple[Tensor, Tensors]:
        rows = state["h"].shape[0]
        if x.shape[0] == rows:
            return self._step(x, state if first is None else _fresh(state, first))
        if x.shape[0] % rows:
            raise UsageError(
                f"LSTM: {x.shape[0]} rows of input but {rows} rows of state; expected a state for "
                "each row, or for each row of a sequence; start from initial_state(batch_size)"
            )
        return self._sequence(x.reshape(-1, rows, x.shape[1]), state, first)

    def _sequence(self, x: Tensor, state: State, first: Tensor | None) -> tuple[Tensor, Tensors]:
        """Cut `[T, B, F]` where any row begins an episode; within a stretch nothing resets."""
        if first is None:
            return self._stretch(x, state, None)
        cuts = [int(t) for t in first[1:].any(1).nonzero() + 1]
        results: list[Tensor] = []
        carried = dict(state)
        for begin, end in pairwise((0, *cuts, len(x))):
            y, carried = self._stretch(x[begin:end], carried, first[begin])
            results.append(y)
        return torch.cat(results), carried

    def _stretch(self, x: Tensor, state: State, first: Tensor | None) -> tuple[Tensor, Tensors]:
        """`[T, B, F]` to `[T * B, size]`, starting fresh in the rows where `first` is true."""
        if first is not None:
            state = _fresh(state, first)
        if len(x) == 1:  # a quarter of the time that the general kernel takes on a CPU
            return self._step(x[0], state)
        y, (h, c) = self.core(x, (state["h"][None], state["c"][None]))
        return y.flatten(0, 1), {"h": h[0], "c": c[0]}

    def _step(self, x: Tensor, state: State) -> tuple[Tensor, Tensors]:
        core: Any = self.core
        weights = (core.weight_ih_l0, core.weight_hh_l0, core.bias_ih_l0, core.bias_hh_l0)
        h, c = torch.lstm_cell(x, (state["h"], state["c"]), *weights)
        return h, {"h": h, "c": c}

    def _output_shape(self) -> Shape:
        return (self.size,)

    def _state_shapes(self) -> dict[str, Shape]:
        return {"h": (self.size,), "c": (self.size,)}


def _fresh(state: State, first: Tensor) -> HiddenState:
    return HiddenState(state).reset(first.reshape(-1))
