"""Steps of a policy within a trust region: natural gradients by products with the Fisher matrix.

Vectors are flat: the numbers of all parameters behind each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

Product = Callable[[Tensor], Tensor]  # of a symmetric matrix with a vector


class Judged(NamedTuple):
    """What a step comes to."""

    gain: float  # of the surrogate objective, over no step at all
    kl: float  # mean KL divergence from the policy before the step


def flatten(parts: Sequence[Tensor]) -> Tensor:
    """All parts as one vector."""
    return torch.cat([x.reshape(-1) for x in parts])


@torch.no_grad()
def assign(parameters: Sequence[Tensor], vector: Tensor) -> None:
    """Write a vector into the parameters: the inverse of `flatten`."""
    parts = vector.split([p.numel() for p in parameters])
    for parameter, part in zip(parameters, parts, strict=True):
        parameter.copy_(part.view(parameter.shape))


def fisher_product(kl: Tensor, parameters: Sequence[Tensor], damping: float) -> Product:
    """v → (F + damping · I) v, with F the Hessian of `kl` (arXiv:1502.05477, appendix C.1).

    `kl` is the mean divergence from the policy to itself, where its Hessian is the Fisher matrix
    and its gradient zero. It is differentiated twice, so F is never written out.
    """
    slope = flatten(torch.autograd.grad(kl, parameters, create_graph=True, materialize_grads=True))

    def product(vector: Tensor) -> Tensor:
        along = slope @ vector
        found = torch.autograd.grad(along, parameters, retain_graph=True, materialize_grads=True)
        return flatten(found) + damping * vector

    return product


def fisher_matrix(kl: Callable[[Tensor, Tensor], Tensor], params: Tensor) -> Tensor:
    """∇² KL(p, q) by q at q = p, `[B, P, P]`: Fisher's matrix of a distribution's own parameters.

    `kl` is of two rows `[P]` of parameters; `params` is `[B, P]`.
    """
    hessian = torch.func.hessian(lambda q, p: kl(p, q))
    found: Tensor = torch.func.vmap(hessian)(params.detach(), params.detach())
    return found


def conjugate_gradient(
    product: Product, target: Tensor, iterations: int, tolerance: float = 1e-10
) -> Tensor:
    """x with A x = `target` for the positive matrix A of `product` (Hestenes and Stiefel, 1952).

    It ends once the squared error is `tolerance` times that of x = 0; a zero target gives zero.
    """
    x, error, direction = torch.zeros_like(target), target, target
    square = start = error @ error
    for _ in range(iterations):
        if not square > tolerance * start:
            break
        image = product(direction)
        length = square / (direction @ image)
        x, error = x + length * direction, error - length * image
        before, square = square, error @ error
        direction = error + square / before * direction
    return x


def natural_step(gradient: Tensor, product: Product, max_kl: float, iterations: int) -> Tensor:
    """√(2 δ / sᵀ A s) s along s = A⁻¹ g, whose divergence is δ to second order.

    g is the gradient of the surrogate objective, A the matrix of `product`, δ `max_kl`, as in
    appendix C of arXiv:1502.05477. A zero gradient gives no step.
    """
    direction = conjugate_gradient(product, gradient, iterations)
    curvature = direction @ product(direction)
    return torch.where(curvature > 0, (2 * max_kl / curvature).sqrt() * direction, 0)


def line_search(
    judge: Callable[[Tensor], Judged], step: Tensor, max_kl: float, backtracks: int, shrink: float
) -> Judged | None:
    """Shorten a step until it gains and its divergence is at most `max_kl`; None: it never does.

    The steps tried are `step`, then each `shrink` times the one before, `backtracks` in all.
    """
    for i in range(backtracks):
        judged = judge(shrink**i * step)
        if judged.gain > 0 and judged.kl <= max_kl:
            return judged
    return None
