"""Noise on actions by name: uniform, normal, clipped normal, Ornstein–Uhlenbeck."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from operant.core.errors import UsageError
from operant.ops import noise

KINDS: dict[str, tuple[Callable[..., Tensor], int]] = {  # a function, and how many parameters
    "uniform": (noise.uniform, 2),
    "normal": (noise.normal, 2),
    "clipped_normal": (noise.clipped_normal, 4),
}
PROCESS = "ou"


class NoiseMaker:
    """Makes noise for actions; that of a process goes on by shape and by `whose` it is."""

    def __init__(self) -> None:
        self.state: dict[str, Tensor] = {}

    def __call__(self, action: Tensor, mode: str, parameters: Any, whose: str = "") -> Tensor:
        """Noise like an action `[B, dim]`; one set of parameters, or one for each dimension."""
        if mode == PROCESS:
            return self._process(action, parameters, whose)
        if mode not in KINDS:
            known = ", ".join((*KINDS, PROCESS))
            raise UsageError(f"mode = {mode!r}: expected one of {known}")
        function, count = KINDS[mode]
        return function(action, *_arguments(parameters, count, action, mode))

    def _process(self, action: Tensor, parameters: Any, whose: str) -> Tensor:
        key = whose + "x".join(map(str, action.shape))
        given = dict(parameters) if isinstance(parameters, Mapping) else {}
        if not isinstance(parameters, Mapping):
            given = dict(
                zip(("mu", "sigma"), _arguments(parameters, 2, action, PROCESS), strict=True)
            )
        start = given.pop("x0", None)
        fresh = torch.zeros_like(action) if start is None else torch.full_like(action, start)
        before = self.state.get(key, fresh).to(action.device)
        try:
            self.state[key] = noise.ornstein_uhlenbeck(before, **given)
        except TypeError:
            known = "mu, sigma, theta, dt, x0"
            raise UsageError(f"noise_param = {parameters!r}: expected some of {known}") from None
        return self.state[key]

    def reset(self) -> None:
        """Begin again from zero."""
        self.state = {}

    def state_dict(self) -> dict[str, Any]:
        """Where each process is."""
        return dict(self.state)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave."""
        self.state = {name: x.clone() for name, x in state.items()}


def _arguments(parameters: Any, count: int, action: Tensor, mode: str) -> Sequence[Any]:
    """The parameters of a noise: numbers, or one tensor each for all dimensions."""
    rows = isinstance(parameters[0], Sequence) if isinstance(parameters, Sequence) else None
    dims = action.shape[-1]
    if rows and all(len(row) == count for row in parameters) and len(parameters) == dims:
        columns = torch.tensor(parameters, dtype=action.dtype, device=action.device).T
        return list(columns)
    if rows is False and len(parameters) == count:
        return list(parameters)
    raise UsageError(
        f"noise_param = {parameters!r}: expected {count} numbers for {mode} noise, or a list of "
        f"{dims}, one for each dimension of the action"
    )
