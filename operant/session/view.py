"""What shows a run to whoever waits for it."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self

from operant.core.experience import Metrics


class View(Protocol):
    """Shows a run while it trains, such as `report.progress.ProgressView`."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
    def update(self, step: int, metrics: Metrics) -> None: ...
