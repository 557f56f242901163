"""Fully connected layers whose weights are noisy, so that a greedy policy explores."""

from __future__ import annotations

from math import sqrt
from typing import Self

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F


class NoisyLinear(nn.Linear):
    """A linear layer with factorised Gaussian noise (arXiv:1706.10295, eq. 9 to 11).

    y = (μ_w + σ_w ⊙ ε_w) x + μ_b + σ_b ⊙ ε_b, where ε_w = f(ε_out) f(ε_in)ᵀ, ε_b = f(ε_out) and
    f(x) = sgn(x) √|x|. `weight` and `bias` are the means μ; every σ is `sigma` / √in at first.
    Noise changes only when it is redrawn, and is none at first.
    """

    noise_in: Tensor  # f(ε_in)
    noise_out: Tensor  # f(ε_out)

    def __init__(self, in_features: int, out_features: int, sigma: float = 0.5) -> None:
        super().__init__(in_features, out_features)
        start = sigma / sqrt(in_features)
        self.weight_sigma = nn.Parameter(torch.full_like(self.weight, start))
        self.bias_sigma = nn.Parameter(torch.full_like(self.bias, start))
        # Not saved: whoever uses noise draws it first, from a generator that is saved.
        self.register_buffer("noise_in", torch.zeros(in_features), persistent=False)
        self.register_buffer("noise_out", torch.zeros(out_features), persistent=False)

    @classmethod
    def around(cls, layer: nn.Linear) -> Self:
        """A noisy layer whose means are the weights of `layer`."""
        made = cls(layer.in_features, layer.out_features)
        made.weight, made.bias = layer.weight, layer.bias
        return made

    @torch.no_grad()
    def redraw(self, generator: Generator) -> None:
        """Draw new noise."""
        drawn = torch.randn(
            self.in_features + self.out_features, generator=generator, device=generator.device
        )
        drawn = (drawn.sign() * drawn.abs().sqrt()).to(self.weight.device)
        # Not written in place: in worker processes the old ones lie in memory that all share.
        self.noise_in, self.noise_out = drawn[: self.in_features], drawn[self.in_features :]

    def still(self) -> None:
        """Take the noise away."""
        self.noise_in = torch.zeros_like(self.noise_in)
        self.noise_out = torch.zeros_like(self.noise_out)

    def forward(self, input: Tensor) -> Tensor:
        noise = self.noise_out.outer(self.noise_in)
        weight = torch.addcmul(self.weight, self.weight_sigma, noise)
        return F.linear(input, weight, torch.addcmul(self.bias, self.bias_sigma, self.noise_out))


def make_noisy(network: nn.Module) -> None:
    """Put noisy layers in the place of linear ones, whose weights become the means."""
    for module in list(network.modules()):
        for name, layer in list(module.named_children()):
            if type(layer) is nn.Linear:
                setattr(module, name, NoisyLinear.around(layer))
