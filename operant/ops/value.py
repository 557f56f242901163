"""Losses of values, and values of actions made of discrete parts.

`q_values` holds `[..., sum of choices]` by action name, `choices` how many each part has. The
value of an action is the sum over its parts, so the best action is the best of every part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce

import torch
from torch import Tensor

from operant.core.experience import Tensors
from operant.ops.categorical import forbidden_rows, from_rows, logit_rows, to_rows

Q = "q."  # what outputs that hold Q-values begin with
Choices = Mapping[str, Sequence[int]]
Criterion = Callable[[Tensor, Tensor], Tensor]  # loss of predictions and targets


def value_error(value: Tensor, target: Tensor) -> Tensor:
    """½ (V − target)²."""
    return squared(value - target)


def squared(error: Tensor) -> Tensor:
    """½ δ²."""
    return 0.5 * error**2


def huber_loss(value: Tensor, target: Tensor) -> Tensor:
    """`huber` of V − target."""
    return huber(value - target)


def huber(error: Tensor, delta: float = 1.0) -> Tensor:
    """½ δ² where |δ| ≤ Δ, else Δ (|δ| − ½ Δ), with Δ = `delta` (Huber, 1964)."""
    size = error.abs()
    near = size.clamp(max=delta)
    return near * (size - 0.5 * near)


def hysteretic(guess: Tensor, target: Tensor, increase: float, decrease: float) -> Tensor:
    """guess + rate (target - guess), rate = `increase` where that is a rise, else `decrease`.

    Hysteretic learning (Matignon et al., IROS 2007, eq. 3) as a change of the target. A rate of one
    is the target itself, zero leaves the guess as it is, bit for bit.
    """
    rate = torch.where(target > guess, increase, decrease)
    return torch.lerp(guess, target, rate.to(guess.dtype))


def q_of(q_values: Tensors, action: Tensors, choices: Choices) -> Tensor:
    """Q-value of `action`, `[...]`: the sum over all parts of that of the chosen one.

    Double DQN (arXiv:1509.06461, eq. 4) is `q_of(target_q, greedy(online_q, ...), choices)`.
    """
    return _sum(_chosen(q, action[name], choices[name]) for name, q in q_values.items())


def greedy(q_values: Tensors, choices: Choices, masks: Tensors) -> Tensors:
    """The best allowed action: `[...]` for one part, `[..., parts]` for several."""
    best = {
        name: logit_rows(q, choices[name], masks.get(name)).argmax(-1)
        for name, q in q_values.items()
    }
    return {name: x.squeeze(-1) if len(choices[name]) == 1 else x for name, x in best.items()}


def max_q(q_values: Tensors, choices: Choices, masks: Tensors) -> Tensor:
    """Value of the best allowed action, `[...]`."""
    return _sum(
        logit_rows(q, choices[name], masks.get(name)).amax(-1).sum(-1)
        for name, q in q_values.items()
    )


def expected_q(q: Tensor, logits: Tensor, choices: Sequence[int], mask: Tensor | None) -> Tensor:
    """Expected Q-value Σ_a π(a|s) Q(s, a), `[...]` (arXiv:1910.07207, eq. 10).

    Forbidden choices have probability zero, and their values pass no gradient to the policy.
    """
    probability = logit_rows(logits, choices, mask).softmax(-1)
    values = to_rows(q, choices)
    return torch.where(probability > 0, probability * values, 0).sum((-2, -1))


def dueling(
    advantage_values: Tensors, state_value: Tensor, choices: Choices, masks: Tensors | None = None
) -> Tensors:
    """Q(s, a) = V(s) + A(s, a) − mean_a' A(s, a') (arXiv:1511.06581, eq. 9); V is `[..., 1]`.

    Advantages are centred over the allowed actions of each part: a part whose choices are all
    alike adds zero. Each part carries its share of the state value, which so enters a sum once.
    """
    masks = masks or {}
    share = state_value / sum(len(choices[name]) for name in advantage_values)
    return {
        name: share + _centred(x, choices[name], masks.get(name))
        for name, x in advantage_values.items()
    }


def _chosen(q: Tensor, action: Tensor, choices: Sequence[int]) -> Tensor:
    place = action.reshape(*q.shape[:-1], len(choices), 1)
    return to_rows(q, choices).gather(-1, place).squeeze(-1).sum(-1)


def _centred(advantage: Tensor, choices: Sequence[int], mask: Tensor | None) -> Tensor:
    x = to_rows(advantage, choices)
    forbidden = forbidden_rows(mask, choices, x.device)
    if forbidden is None:
        mean = x.mean(-1, keepdim=True)
    else:
        total = x.masked_fill(forbidden, 0).sum(-1, keepdim=True)
        mean = total / (~forbidden).sum(-1, keepdim=True)
    return from_rows(x - mean, choices)


def _sum(parts: Iterable[Tensor]) -> Tensor:
    return reduce(torch.add, parts)
