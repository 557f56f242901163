"""Whether what was learned is still made of numbers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from operant.core import tree


def not_finite(agent_state: dict[str, Any]) -> list[str]:
    """Names of the tensors of an agent, its memory aside, that hold NaN or infinity."""
    learned = {name: part for name, part in agent_state.items() if name != "memory"}
    return [
        name
        for name, x in tree.leaves(learned)
        if isinstance(x, Tensor) and x.is_floating_point() and not torch.isfinite(x).all()
    ]
