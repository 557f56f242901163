"""What frameworks over a replay buffer share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from operant.core.errors import UsageError
from operant.core.experience import Experience


def check_rates(framework: Any, settings: Mapping[str, Any]) -> None:
    """Refuse two ways in which target networks would follow."""
    both = framework.update_steps is not None and settings.get("update_rate")
    if both:
        raise UsageError(
            f"update_rate = {framework.update_rate}, update_steps = {framework.update_steps}: a "
            f"target network moves a little at each update, or as a whole every so many; give one"
        )


def tau_of(update_rate: float | None, update_steps: int | None) -> float:
    """The share by which a target network moves when it moves."""
    return 1.0 if update_steps is not None or update_rate is None else update_rate


def user_backup(
    framework: Any, default: Callable[..., Tensor]
) -> Callable[[Experience, Tensor], Tensor] | None:
    """The user's `reward_function`, if it is not the `default`, on the rows of a batch."""
    if type(framework).reward_function is default:
        return None

    def backup(batch: Experience, next_value: Tensor) -> Tensor:
        columns = (x.reshape(-1, 1) for x in (batch.reward, next_value, batch.terminated))
        reward, following, terminal = columns
        others = {k: x.reshape(len(reward), -1) for k, x in batch.memo.items()}
        discount = framework.discount
        found: Tensor = framework.reward_function(reward, discount, following, terminal, others)
        return found.reshape(next_value.shape)

    return backup
