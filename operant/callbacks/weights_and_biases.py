"""Sends the metrics of a run to Weights & Biases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from operant.config import to_tree
from operant.core.errors import UsageError
from operant.session.callbacks import Event


@dataclass
class WeightsAndBiases:
    """Logs every line of the run to a project; a run that is resumed goes on in the same place.

    Needs the extra `wandb`. `WANDB_MODE=offline` writes to a directory of the run instead.
    """

    project: str = "operant"
    entity: str | None = None  # user or team; None: the default of the account
    group: str | None = None  # of runs that belong together

    def on_start(self, event: Event) -> None:
        """Begin, or go on with, the run of this name."""
        self._run = _wandb().init(
            project=self.project,
            entity=self.entity,
            group=self.group,
            name=event.run.name,
            id=event.run.name,
            resume="allow",
            dir=event.run,
            config={"algorithm": event.config.algorithm, **to_tree(event.config)},
        )

    def on_log(self, event: Event) -> None:
        """Send a line of the log."""
        self._run.log(event.metrics, step=event.step)

    def on_stop(self, event: Event) -> None:
        """Send what is left; a run that failed is marked so."""
        self._run.finish(exit_code=int(event.reason == "failed"))


def _wandb() -> Any:
    try:
        import wandb  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise UsageError(
            f"WeightsAndBiases needs the package wandb ({error}); "
            f"install it with: pip install 'operant[wandb]'"
        ) from error
    return wandb
