"""Target networks."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import torch

from operant.agents.modes import in_eval_mode
from operant.core.protocols import Network


class Target:
    """A copy of a network that follows it slowly, and that no gradient enters.

    `own` is a network of the same structure to use as the copy; the source itself never lags.
    """

    def __init__(self, source: Network, own: Network | None = None) -> None:
        self.source, self.network = source, deepcopy(source) if own is None else own
        if self.network is not source:
            self.network.requires_grad_(False)
            in_eval_mode(self.network)  # no gradient step is ever its own

    @torch.no_grad()
    def polyak_update(self, tau: float) -> None:
        """target ← (1 − τ) target + τ source; τ one copies. Buffers are copied."""
        torch._foreach_lerp_(list(self.network.parameters()), list(self.source.parameters()), tau)
        for own, other in zip(self.network.buffers(), self.source.buffers(), strict=True):
            own.copy_(other)

    def state_dict(self) -> dict[str, Any]:
        """The copy's weights."""
        return self.network.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put the copy's weights back."""
        self.network.load_state_dict(state)
