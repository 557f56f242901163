"""Returns and advantages. Tensors are `[T, B]`; row `t` follows row `t - 1`.

`discount` is gamma, and zero where the task terminated: nothing is bootstrapped there.
"""

from __future__ import annotations

import torch
from torch import Tensor

from operant.core.experience import beside


def accumulate(x: Tensor, decay: Tensor) -> Tensor:
    """Solve y_t = x_t + decay_t * y_{t+1} from the end, past which y is zero.

    A zero `decay` cuts the sum after its row. Each round doubles how far y looks ahead, so there
    are log2(T) rounds: faster than a loop over rows from about a dozen of them, and on a GPU.
    """
    y, reach, ahead = x, decay[:-1], 1
    while ahead < len(x):
        y = torch.cat((torch.addcmul(y[:-ahead], reach, y[ahead:]), y[-ahead:]))
        reach = reach[:-ahead] * reach[ahead:]
        ahead *= 2
    return y


def gae(
    reward: Tensor, value: Tensor, next_value: Tensor, discount: Tensor, trace: Tensor
) -> Tensor:
    """Generalised advantages (arXiv:1506.02438, eq. 16): A_t = Σ_l (γλ)^l δ_{t+l}.

    δ_t = r_t + γ V(s_{t+1}) − V(s_t). `trace` is λ, and zero where the episode was cut for either
    reason: the value of what came next still counts there, but no later reward does.
    """
    return accumulate(reward + discount * next_value - value, discount * trace)


def vtrace(
    log_ratio: Tensor,
    reward: Tensor,
    value: Tensor,
    next_value: Tensor,
    discount: Tensor,
    trace: Tensor,
    rho: float = 1.0,
    c: float = 1.0,
) -> tuple[Tensor, Tensor]:
    """V-trace: v, the target of the value, and q of the actions taken (arXiv:1802.01561, eq. 1).

    v_t = V(s_t) + δ_t + γ c_t (v_{t+1} − V(s_{t+1})), δ_t = ρ_t (r_t + γ V(s_{t+1}) − V(s_t)),
    ρ_t = min(ρ̄, π/μ), c_t = λ min(c̄, π/μ); q_t = r_t + γ v_{t+1}, which the policy gradient takes
    (§4.2). `log_ratio` is log π/μ: the log-probability of each action now less that when it was
    taken. `trace` is λ as in `gae`; of v_{t+1} − V(s_{t+1}), q_t takes the share λ, so that where π
    is μ, q_t − V(s_t) is `gae`.
    """
    ratio = log_ratio.exp()
    error = ratio.clamp(max=rho) * (reward + discount * next_value - value)
    ahead = accumulate(error, discount * trace * ratio.clamp(max=c))  # v_t - V_t
    later = torch.cat((ahead[1:], torch.zeros_like(ahead[:1])))
    return value + ahead, reward + discount * (next_value + trace * later)


def retrace(
    log_ratio: Tensor,
    reward: Tensor,
    q: Tensor,
    next_value: Tensor,
    discount: Tensor,
    trace: Tensor,
) -> Tensor:
    """Retrace targets of the actions taken (arXiv:1606.02647, eq. 3, 4; arXiv:1611.01224, eq. 5).

    Q^ret_t = r_t + γ (V(s_{t+1}) + λ min(1, ρ_{t+1}) (Q^ret_{t+1} − Q(s_{t+1}, a_{t+1}))).
    `q` is Q(s_t, a_t), `log_ratio` is log ρ_t = log π/μ of that action; `trace` is λ as in `gae`.
    The ratio that carries row t + 1 back is that row's own: a_t is given, whatever its ratio.
    """
    ratio = log_ratio.exp().clamp(max=1)
    carried = torch.cat((ratio[1:], torch.zeros_like(ratio[:1])))
    return q + accumulate(reward + discount * next_value - q, discount * trace * carried)


def n_step(reward: Tensor, next_value: Tensor, discount: Tensor, ended: Tensor, n: int) -> Tensor:
    """n-step returns r_t + γ r_{t+1} + … + γ^n V(s_{t+n}) (Sutton and Barto 2018, eq. 7.1).

    The walk stops early where `ended` is true and at the last row, and takes the value there; a
    zero discount makes that value count for nothing. `next_value` may have further axes.
    """
    reward, discount, ended = (beside(x, next_value) for x in (reward, discount, ended))
    target = reward + discount * next_value
    if n == 1 or len(reward) == 1:
        return target
    stop = _stops(ended)[:-1]
    for _ in range(min(n, len(reward)) - 1):
        ahead = torch.where(stop, next_value[:-1], target[1:])
        target = torch.cat((reward[:-1] + discount[:-1] * ahead, target[-1:]))
    return target


def at_stop(x: Tensor, ended: Tensor, n: int) -> Tensor:
    """What `x` `[T, B, ...]` is in the row where the walk of `n_step` from each row stops."""
    ones = torch.ones_like(ended, dtype=x.dtype)
    return n_step(torch.zeros_like(ones), x, ones, ended, n)


def discounted(reward: Tensor, next_value: Tensor, discount: Tensor, ended: Tensor) -> Tensor:
    """`n_step` to the end of the sequence: the return of A2C (arXiv:1602.01783, algorithm S3)."""
    stop = _stops(ended)
    bootstrap = (discount * next_value).masked_fill(~stop, 0)
    return accumulate(reward + bootstrap, discount.masked_fill(stop, 0))


def _stops(ended: Tensor) -> Tensor:
    """Rows after which nothing belongs to the same walk."""
    return torch.cat((ended[:-1], torch.ones_like(ended[-1:])))
