"""The entropy at which SAC's temperature aims."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor

from operant.core.experience import Tensors
from operant.core.spaces import Space, choices
from operant.ops import policy
from operant.ops.categorical import max_entropy


@dataclass(frozen=True)
class TargetEntropy:
    """As `given`, or −1 a continuous dimension and a share of the most that choices can have."""

    action_space: dict[str, Space]
    given: float | None
    share: float

    def unmasked(self, besides: Tensors | None = None) -> float:
        """Of an action all of whose choices are allowed; parts in `besides` are left out."""
        if self.given is not None:
            return self.given
        target = 0.0
        for space in (x for k, x in self.action_space.items() if k not in (besides or {})):
            counts = choices(space)
            target += self.share * sum(math.log(n) for n in counts)
            target -= 0 if counts else math.prod(space.shape or ())
        return target

    def masked(self, masks: Tensors, valid: Tensor | None) -> Tensors:
        """The mean `target_entropy` over valid rows, if masks change it: by what each row allows.

        Where few choices are allowed the unmasked target may be out of reach, and the temperature
        would grow without bound.
        """
        if not masks or self.given is not None:
            return {}
        most = [max_entropy(mask, choices(self.action_space[k])) for k, mask in masks.items()]
        discrete = policy.masked_mean(self.share * reduce(torch.add, most), valid)
        return {"target_entropy": discrete + self.unmasked(besides=masks)}
