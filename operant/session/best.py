"""The weights with the best evaluation of a run, kept apart from the newest checkpoints."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from operant.core.errors import CheckpointError, UsageError
from operant.core.protocols import Agent
from operant.session.callbacks import Callbacks, Event
from operant.session.checkpoint import checkpoint
from operant.session.load_run import BEST
from operant.session.run_settings import RunConfig
from operant.session.session import warn


@dataclass
class BestCheckpoint:
    """Keeps the weights of the evaluation with the highest `metric`; of equal ones, the first.

    Only what acting needs is saved, not the replay buffer. What is on disk counts, so that a run
    that was killed and resumed keeps what it would have kept.
    """

    metric: str = "eval/mean_reward"

    def on_evaluation(self, event: Event) -> None:
        """Save the weights if this evaluation is the best so far."""
        if self.metric not in event.metrics:
            known = ", ".join(event.metrics)
            raise UsageError(f"BestCheckpoint: metric = {self.metric!r}: expected one of {known}")
        score = float(event.metrics[self.metric])
        if not math.isnan(score) and score > best_score(event.run, self.metric):
            self._save(event, score)

    def _save(self, event: Event, score: float) -> None:
        about = {"metric": self.metric, "score": score}
        state = acting_state(event.agent)
        try:
            checkpoint.save(event.run / BEST, event.step, state, keep=1, extra=about)
        except (CheckpointError, OSError) as error:
            warn(f"the best weights were not saved: {error}; training goes on")


def best_score(run: Path, metric: str) -> float:
    """The score of the weights that are kept; minus infinity if there are none."""
    found = checkpoint.listing(run / BEST)
    try:
        about = checkpoint.newest(run / BEST).manifest["extra"] if found else {}
    except CheckpointError:  # incomplete: to be replaced
        return -math.inf
    return float(about["score"]) if about.get("metric") == metric else -math.inf


def acting_state(agent: Agent) -> dict[str, Any]:
    """What acting needs: weights with statistics of observations, counts and generators."""
    return {"network": agent.network.state_dict(), "actor": agent.actor.state_dict()}


def keep_best(callbacks: Callbacks, config: RunConfig) -> None:
    """Every run keeps its best weights, unless it says otherwise or names another metric."""
    own = any(isinstance(callback, BestCheckpoint) for _, callback in callbacks.named)
    if config.checkpoint.best and not own:
        callbacks.named.append((BestCheckpoint.__name__, BestCheckpoint()))
