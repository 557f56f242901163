"""How agents that learn off-policy explore: at random first, then around what they would choose."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Generator, Tensor

from operant.agents.actor import ActionSelector, Explored
from operant.core.errors import UsageError
from operant.core.experience import Arrays, Tensors
from operant.core.protocols import Rows
from operant.core.spaces import Space
from operant.ops import deterministic, explore
from operant.ops.distribution import POLICY

NoiseName = Literal["gaussian", "uniform", "ornstein-uhlenbeck"]
NOISE = "noise."  # what the state of correlated noise begins with


class UniformAtFirst(ActionSelector):
    """Uniformly random actions at first, then what `choose` and `choose_numpy` say."""

    def __init__(
        self, action_space: dict[str, Space], outputs: Iterable[str], random_steps: int
    ) -> None:
        super().__init__(action_space, outputs)
        self.action_space, self.random_steps = action_space, random_steps

    def choose(self, out: Tensors, masks: Tensors, generator: Generator) -> Tensors:
        """Actions once the random steps are over."""
        raise NotImplementedError

    def choose_numpy(self, out: Arrays, generator: Generator, rows: Rows) -> Arrays:
        """`choose` in NumPy, where no action is masked."""
        raise NotImplementedError

    def explore(self, out: Tensors, masks: Tensors, generator: Generator, acted: int) -> Tensors:
        if acted >= self.random_steps:
            return self.choose(out, masks, generator)
        batch, device = len(next(iter(out.values()))), generator.device
        return explore.uniform(self.action_space, batch, masks, generator, device)

    def explore_numpy(self, out: Arrays, generator: Generator, rows: Rows, acted: int) -> Explored:
        if acted >= self.random_steps:
            return self.choose_numpy(out, generator, rows), {}
        start, stop, total = rows
        drawn = explore.uniform(self.action_space, total, {}, generator, "cpu")
        return {name: x[start:stop].numpy() for name, x in drawn.items()}, {}


@dataclass(frozen=True)
class Noise:
    """Which noise is added to actions; `scale` is one number, or one for each dimension of them."""

    name: NoiseName
    scale: float | tuple[float, ...]
    theta: float  # of Ornstein–Uhlenbeck noise

    def by_action(self, action_space: dict[str, Space]) -> dict[str, float | list[float]]:
        """The scale of each action: a number, or one for each of its dimensions."""
        sizes = {name: math.prod(space.shape or ()) for name, space in action_space.items()}
        if not isinstance(self.scale, tuple):
            return dict.fromkeys(sizes, self.scale)
        rest, total = list(self.scale), sum(sizes.values())
        if len(rest) != total:
            raise UsageError(
                f"exploration_scale = {rest}: {len(rest)} numbers for actions of {total} "
                f"dimensions; expected one number, or {total}"
            )
        return {name: [rest.pop(0) for _ in range(size)] for name, size in sizes.items()}


class NoisySelector(UniformAtFirst):
    """What a deterministic policy proposes, and noise, within [-1, 1]."""

    def __init__(self, action_space: dict[str, Space], noise: Noise, random_steps: int) -> None:
        outputs = [POLICY + name for name in action_space]
        super().__init__(action_space, outputs, random_steps)
        self.shapes = {name: space.shape or () for name, space in action_space.items()}
        self.noise, self.scales = noise, noise.by_action(action_space)
        self.correlated = noise.name == "ornstein-uhlenbeck"
        self.in_numpy = not self.correlated

    def initial_state(self, batch_size: int) -> Tensors:
        if not self.correlated:
            return {}
        return {NOISE + k: torch.zeros(batch_size, *shape) for k, shape in self.shapes.items()}

    def advance(self, state: Tensors, generator: Generator) -> Tensors:
        theta = self.noise.theta
        return {
            name: explore.ornstein_uhlenbeck(
                x, self._scale(name.removeprefix(NOISE), generator), theta, generator
            )
            for name, x in state.items()
        }

    def choose(self, out: Tensors, masks: Tensors, generator: Generator) -> Tensors:
        best = self.exploit(out, masks)
        batch = len(next(iter(best.values())))
        return {
            name: (
                x + (out[NOISE + name] if self.correlated else self._draw(name, batch, generator))
            ).clamp(-1.0, 1.0)
            for name, x in best.items()
        }

    def exploit(self, out: Tensors, masks: Tensors) -> Tensors:
        return deterministic.squashed(out, self.shapes)

    def choose_numpy(self, out: Arrays, generator: Generator, rows: Rows) -> Arrays:
        start, stop, total = rows
        actions = {}
        for name, shape in self.shapes.items():
            noise = self._draw(name, total, generator)[start:stop].numpy()
            best = np.tanh(out[POLICY + name]).reshape(-1, *shape)
            actions[name] = (best + noise).clip(-1.0, 1.0)
        return actions

    def _draw(self, name: str, batch: int, generator: Generator) -> Tensor:
        """Noise `[batch, ...]` that no step shares with another."""
        draw = explore.uniform_noise if self.noise.name == "uniform" else explore.normal_noise
        return draw((batch, *self.shapes[name]), self._scale(name, generator), generator)

    def _scale(self, name: str, generator: Generator) -> float | Tensor:
        scale = self.scales[name]
        if not isinstance(scale, list):
            return scale
        numbers = torch.tensor(scale, dtype=torch.float32, device=generator.device)
        return numbers.view(self.shapes[name])
