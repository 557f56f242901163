"""Several policies of one agent, of which each episode draws one (MADDPG's ensembles)."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from operant.agents.actor import ActionSelector
from operant.core.experience import Tensors

SUB_POLICY = "sub_policy"  # its number, counted from one; zero: none was drawn yet


class SubPolicySelector(ActionSelector):
    """Chooses as `inner` does, by the one of `count` policies that its episode has drawn.

    Without exploration the first one acts.
    """

    def __init__(self, inner: ActionSelector, count: int) -> None:
        super().__init__(inner.names, inner.outputs)
        self.inner, self.count = inner, count

    def initial_state(self, batch_size: int) -> Tensors:
        return {**self.inner.initial_state(batch_size), SUB_POLICY: torch.zeros(batch_size)}

    def advance(self, state: Tensors, generator: Generator) -> Tensors:
        number = state[SUB_POLICY]
        drawn = torch.randint(self.count, number.shape, generator=generator, device=number.device)
        others = {k: x for k, x in state.items() if k != SUB_POLICY}
        moved = self.inner.advance(others, generator)
        return {**moved, SUB_POLICY: torch.where(number == 0, drawn + 1.0, number)}

    def explore(self, out: Tensors, masks: Tensors, generator: Generator, acted: int) -> Tensors:
        return self.inner.explore(self._picked(out, out[SUB_POLICY]), masks, generator, acted)

    def exploit(self, out: Tensors, masks: Tensors) -> Tensors:
        rows = len(next(iter(out.values())))
        return self.inner.exploit(self._picked(out, torch.ones(rows)), masks)

    def memo(self, out: Tensors, action: Tensors, masks: Tensors) -> Tensors:
        return {SUB_POLICY: out[SUB_POLICY]}

    def _picked(self, out: Tensors, number: Tensor) -> Tensors:
        return {k: picked(x, number) if k in self.outputs else x for k, x in out.items()}


def picked(output: Tensor, number: Tensor) -> Tensor:
    """Of outputs `[..., policies, n]` those of the policies with these numbers `[...]`."""
    index = (number.to(output.device).long() - 1).clamp(min=0)
    return output.take_along_dim(index[..., None, None], -2).squeeze(-2)
