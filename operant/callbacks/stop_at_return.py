"""Ends a run that is good enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from operant.core.errors import UsageError
from operant.session.callbacks import STOP, Event


@dataclass
class StopAtReturn:
    """Ends the run once the mean return reaches `threshold`.

    `by` says whose: of an evaluation, or of the last 100 training episodes (`"rollout"`).
    """

    threshold: float
    by: Literal["evaluation", "rollout"] = "evaluation"

    def __post_init__(self) -> None:
        if self.by not in ("evaluation", "rollout"):
            raise UsageError(f"StopAtReturn: by = {self.by!r}: expected evaluation or rollout")

    def on_start(self, event: Event) -> None:
        """Refuse to wait for evaluations that never come."""
        if self.by == "evaluation" and event.config.eval.every is None:
            raise UsageError(
                "StopAtReturn: by = 'evaluation', and eval.every = none switches evaluation off; "
                "use by='rollout', or let the run be evaluated"
            )

    def on_evaluation(self, event: Event) -> str | None:
        """Compare the evaluation."""
        reached = event.metrics["eval/mean_reward"] >= self.threshold
        return STOP if self.by == "evaluation" and reached else None

    def on_log(self, event: Event) -> str | None:
        """Compare the training episodes."""
        mean = event.metrics.get("rollout/ep_rew_mean", -float("inf"))
        return STOP if self.by == "rollout" and mean >= self.threshold else None
