"""Losses of policies and their diagnostics, element by element.

`log_ratio` is the log-probability now minus the one when the action was taken; zero means that the
policy has not moved. Elements where nothing was decided are left out by `masked_mean`.
"""

from __future__ import annotations

from math import log

import torch
from torch import Tensor

from operant.core.experience import Tensors


def policy_gradient(log_prob: Tensor, advantage: Tensor) -> Tensor:
    """-log π(a_t|s_t) A_t, the loss of REINFORCE with a baseline (arXiv:1602.01783, section 4.3).

    No gradient flows into the advantage; where it is zero, the action is neither better nor worse.
    """
    return -log_prob * advantage.detach()


def clipped_surrogate(log_ratio: Tensor, advantage: Tensor, clip: float) -> Tensor:
    """min(r A, clip(r, 1 - ε, 1 + ε) A), the gain of PPO (arXiv:1707.06347, eq. 7).

    r is exp(`log_ratio`), A the advantage, ε `clip`; flat where the ratio has gone far enough.
    """
    ratio = log_ratio.exp()
    gain = ratio * advantage
    # Where this is the lesser the ratio is past the clip range, so no gradient is lost.
    bound = ratio.detach().clamp(1 - clip, 1 + clip) * advantage
    return torch.where(gain <= bound, gain, bound)


def surrogate(log_ratio: Tensor, advantage: Tensor) -> Tensor:
    """r A, the gain of TRPO (arXiv:1502.05477, eq. 14): r is exp(`log_ratio`), A the advantage."""
    return log_ratio.exp() * advantage


def kl_estimate(log_ratio: Tensor) -> Tensor:
    """KL(old, new) from actions of the old policy: (ratio - 1) - log ratio, never below zero.

    The estimator k3 of Schulman, "Approximating KL divergence" (2020).
    """
    return torch.expm1(log_ratio) - log_ratio


def clip_fraction(log_ratio: Tensor, clip: float) -> Tensor:
    """One where the ratio is more than `clip` from one, else zero."""
    return (torch.expm1(log_ratio).abs() > clip).to(log_ratio.dtype)


def reduced(loss: Tensor, valid: Tensor | None) -> Tensor:
    """The mean loss of the elements that count, or the number that a criterion made of them."""
    return masked_mean(loss, valid) if loss.dim() else loss


def truncated_gradient(
    log_prob: Tensor, behavior: Tensor, action: Tensor, advantage: Tensor, q: Tensor, bound: float
) -> Tensor:
    """Off-policy gradient by each probability: importance weights truncated, with the correction
    of the bias (arXiv:1611.01224, eq. 9).

    g(a) = [a = a_t] min(c, ρ(a)) A_t / π(a) + max(0, 1 − c / ρ(a)) (Q(s, a) − V(s)) with ρ = π/μ,
    c `bound`, `log_prob` and `behavior` log π and log μ of all actions `[..., A]`, `q` Q(s, a) less
    V(s). Where π(a) is zero, as for a masked action, so is g(a): no gradient passes there.
    """
    chosen = action.unsqueeze(-1)
    log_ratio = log_prob - behavior
    # ρ / π is 1 / μ, however small π has become.
    weight = log_ratio.gather(-1, chosen).clamp(max=log(bound)) - log_prob.gather(-1, chosen)
    correction = (1 - bound * (-log_ratio).exp()).clamp(min=0) * q
    gradient = correction.scatter_add(-1, chosen, weight.exp() * advantage.unsqueeze(-1))
    return torch.where(log_prob.exp() > 0, gradient, 0)


def trust_region(gradient: Tensor, log_prob: Tensor, average: Tensor, bound: float) -> Tensor:
    """The nearest to `gradient` of which KL(average, π) grows by at most `bound` (δ), to first
    order (arXiv:1611.01224, eq. 11, 12).

    z = g − max(0, (k·g − δ) / ‖k‖²) k, where k(a) = −π̄(a) / π(a) is the gradient of the KL
    divergence by each probability; `log_prob` and `average` are log π and log π̄ `[..., A]`.
    """
    probability = log_prob.exp()
    # As good as infinite, and yet its square is not.
    k = -(average - log_prob).exp().clamp(max=1e6)
    k = torch.where(probability > 0, k, 0)
    excess = ((k * gradient).sum(-1, keepdim=True) - bound) / (k * k).sum(-1, keepdim=True)
    return gradient - excess.clamp(min=0) * k


def actor_critic_losses(
    *, policy: Tensor, value: Tensor, entropy: Tensor, coefficients: tuple[float, float]
) -> tuple[Tensors, Tensors]:
    """policy + value_coef · value + entropy_coef · entropy (arXiv:1707.06347, eq. 9), by name.

    A loss with coefficient zero is left out, and costs no gradient. Also the losses as metrics.
    """
    weighted = zip(("value", "entropy"), coefficients, (value, entropy), strict=True)
    losses = {"policy": policy} | {name: weight * x for name, weight, x in weighted if weight}
    metrics = {"policy_gradient_loss": policy, "value_loss": value, "entropy_loss": entropy}
    return losses, metrics


def explained_variance(value: Tensor, target: Tensor, valid: Tensor | None = None) -> Tensor:
    """Share of the target's variance that the value explains: one is all of it.

    Zero is what a constant value gets, and any value where the target itself is constant.
    """
    spread = _variance(target, valid)
    explained = 1 - _variance(target - value, valid) / spread
    return torch.where(spread > 0, explained, 0)


def masked_mean(x: Tensor, valid: Tensor | None) -> Tensor:
    """Mean over the elements where `valid` is true (all, if it is None); zero if there are none."""
    if valid is None:
        return x.mean()
    # Not a product: what was never decided may hold anything, also NaN.
    return torch.where(valid, x, 0).sum() / valid.sum().clamp(min=1)


def standardize(x: Tensor, valid: Tensor | None, eps: float = 1e-8) -> Tensor:
    """`x` in standard deviations from its mean, both over `valid`; zero where that is false."""
    if valid is None:
        spread, mean = torch.std_mean(x, correction=0)
        return (x - mean) / (spread + eps)
    deviation = x - masked_mean(x, valid)
    scaled = deviation / (masked_mean(deviation**2, valid).sqrt() + eps)
    return torch.where(valid, scaled, 0)


def _variance(x: Tensor, valid: Tensor | None) -> Tensor:
    return masked_mean((x - masked_mean(x, valid)) ** 2, valid)
