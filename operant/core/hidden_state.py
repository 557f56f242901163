"""Recurrent state by name: which submodule it belongs to, then what that submodule calls it."""

from __future__ import annotations

from torch import Tensor


class HiddenState(dict[str, Tensor]):
    """Tensors `[B, ...]` by name; empty for a network without memory. Zero is a fresh state."""

    def detach(self) -> HiddenState:
        """The same numbers with no gradient behind them."""
        return HiddenState({name: x.detach() for name, x in self.items()})

    def reset(self, mask: Tensor) -> HiddenState:
        """Fresh state in the rows where `mask` `[B]` is true."""
        return HiddenState({name: x.masked_fill(_beside(mask, x), 0.0) for name, x in self.items()})


def _beside(mask: Tensor, x: Tensor) -> Tensor:
    return mask.view(-1, *(1,) * (x.dim() - 1))
