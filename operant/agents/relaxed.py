"""Exploring with a policy that has discrete parts, whose choices are drawn from its logits."""

from __future__ import annotations

from torch import Generator, Tensor

from operant.agents.exploration import Noise, NoisySelector, UniformAtFirst
from operant.core.experience import Tensors
from operant.core.spaces import Space, choices
from operant.ops import relaxed
from operant.ops.distribution import POLICY


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
