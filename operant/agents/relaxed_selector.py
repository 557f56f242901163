"""Discrete actions of agents whose critics read actions: one-hot vectors, drawn from logits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from gymnasium.spaces import Box
from torch import Generator, Tensor

from operant.agents.critics import ACTION, NAME
from operant.agents.exploration import Noise, NoisySelector, UniformAtFirst
from operant.core.experience import HiddenState, Tensors, substate
from operant.core.protocols import Network
from operant.core.spaces import Shape, Space, choices
from operant.ops import relaxed
from operant.ops.distribution import POLICY


def spread(action_space: Mapping[str, Space]) -> dict[str, Space]:
    """Actions as critics read them: a number for each choice of discrete ones."""
    return {
        name: Box(-1, 1, (sum(choices(x)),), dtype=np.float32) if choices(x) else x
        for name, x in action_space.items()
    }


def relaxed_outputs(action_space: Mapping[str, Space]) -> dict[str, Shape]:
    """What a policy must give: a number for each of those."""
    return {POLICY + k: (prod(x.shape or ()),) for k, x in spread(action_space).items()}


@dataclass(frozen=True)
class JointCriticState:
    """Keeps the hidden state of recurrent critics in step with what all agents saw.

    What they did is not known yet when one of them acts, and leaves no trace in that state.
    """

    network: Network
    shapes: Mapping[str, Shape]  # of the actions that are inputs of theirs

    def __call__(self, observation: Tensors, state: HiddenState, action: Tensors) -> Tensors:
        shown = next(iter(observation.values()))
        nothing = {
            ACTION + k: shown.new_zeros((len(shown), *x)).float() for k, x in self.shapes.items()
        }
        after = self.network({**observation, **nothing}, substate(state, NAME))[1]
        return {f"{NAME}.{k}": x for k, x in after.items()}


class RelaxedSelector(UniformAtFirst):
    """Draws discrete parts by the Gumbel-max trick; adds noise to continuous ones."""

    def __init__(self, action_space: dict[str, Space], noise: Noise, random_steps: int) -> None:
        super().__init__(action_space, [POLICY + name for name in action_space], random_steps)
        self.choices = {k: choices(x) for k, x in action_space.items() if choices(x)}
        rest = {k: x for k, x in action_space.items() if k not in self.choices}
        self.noisy = NoisySelector(rest, noise, 0)
        self.shapes = self.noisy.shapes  # of continuous parts

    def initial_state(self, batch_size: int) -> Tensors:
        return self.noisy.initial_state(batch_size)

    def advance(self, state: Tensors, generator: Generator) -> Tensors:
        return self.noisy.advance(state, generator)

    def choose(self, out: Tensors, masks: Tensors, generator: Generator) -> Tensors:
        drawn = {
            name: self._chosen(name, out, masks, _noise(out[POLICY + name], generator))
            for name in self.choices
        }
        return drawn | (self.noisy.choose(out, masks, generator) if self.shapes else {})

    def exploit(self, out: Tensors, masks: Tensors) -> Tensors:
        best = {
            name: self._chosen(name, out, masks, out[POLICY + name].new_zeros(()))
            for name in self.choices
        }
        return best | (self.noisy.exploit(out, masks) if self.shapes else {})

    def _chosen(self, name: str, out: Tensors, masks: Tensors, noise: Tensor) -> Tensor:
        sizes = self.choices[name]
        hot = relaxed.gumbel_softmax(out[POLICY + name], noise, sizes, masks.get(name))
        return relaxed.choices_of(hot, sizes).reshape(-1, *(self.action_space[name].shape or ()))


def _noise(logits: Tensor, generator: Generator) -> Tensor:
    return relaxed.gumbel_noise(tuple(logits.shape), generator)
