"""Progress of training: a bar on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

    from operant.session.runner import Runner

LIVE_SECONDS = 0.25  # between drawings of the bar
PLAIN_SECONDS = 5.0  # between lines where there is no terminal
LARGE = 10  # returns from which on one decimal place is enough
SMOOTHING = 0.3  # weight of the newest measurement in the moving average of the speed


class ProgressView:
    """Shows how far a run is, its returns and its speed; see `session.runner.View`."""

    def __init__(
        self,
        total: int,
        *,
        start: int = 0,
        frames_per_step: int = 1,
        quiet: bool = False,
        console: Console | None = None,
    ) -> None:
        self.total, self.frames_per_step, self.quiet = total, frames_per_step, quiet
        self.latest: dict[str, float] = {}
        self._seen = (time.monotonic(), start)
        self._speed = 0.0
        self._live: Live | None = None
        if quiet:
            return
        from rich.console import Console  # noqa: PLC0415  # slow to import, and not needed if quiet
        from rich.live import Live  # noqa: PLC0415

        self.console = console or Console(highlight=False)
        live = self.console.is_terminal
        self.interval = LIVE_SECONDS if live else PLAIN_SECONDS
        if live:
            # Drawn in `update`: a thread of its own would take time from training.
            drawing = _drawing(start, total, "-:--", [])
            self._live = Live(drawing, console=self.console, auto_refresh=False)

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def update(self, step: int, metrics: Mapping[str, float] | None = None) -> None:
        """Show the step and the newest metrics, if the last drawing is long enough ago."""
        if self.quiet:
            return
        self.latest.update(metrics or {})
        now = time.monotonic()
        then, before = self._seen
        if now - then < self.interval and step < self.total:
            return
        if now - then >= self.interval or not self._speed:  # too short a time measures noise
            self._measure(max(now - then, 1e-9), step - before)
            self._seen = (now, step)
        self._show(step)

    def note(self, text: str) -> None:
        """Print a line above the bar."""
        if not self.quiet:
            self.console.print(text, markup=False, soft_wrap=True)

    def line(self, step: int) -> str:
        """The progress as one line of text."""
        steps = f"{step:,} / {self.total:,} steps"
        left = f"{clock((self.total - step) / self._speed)} left" if self._speed else ""
        return " · ".join(part for part in (steps, *self._facts(), left) if part)

    def _measure(self, seconds: float, steps: int) -> None:
        newest = steps / seconds
        before = self._speed or newest
        self._speed = before + SMOOTHING * (newest - before)

    def _show(self, step: int) -> None:
        if self._live is None:
            self.console.print(self.line(step), markup=False, soft_wrap=True)
        else:
            left = clock((self.total - step) / self._speed) if self._speed else "-:--"
            self._live.update(_drawing(step, self.total, left, self._facts()), refresh=True)

    def _facts(self) -> list[str]:
        found = []
        for name, key in (("return", "rollout/ep_rew_mean"), ("eval", "eval/mean_reward")):
            if key in self.latest:
                found.append(f"{name} {in_short(self.latest[key])}")
        found.append(f"{self._speed:,.0f} steps/s")
        if self.frames_per_step > 1:
            found.append(f"{self._speed * self.frames_per_step:,.0f} frames/s")
        return found


def progress_of(runner: Runner, quiet: bool = False) -> ProgressView:
    """The view of a run, from the step where it starts or resumes."""
    return ProgressView(
        runner.config.steps,
        start=runner.step,
        frames_per_step=runner.container.frames_per_step,
        quiet=quiet,
    )


def in_short(value: float) -> str:
    """A return with one decimal place, or three digits if it is small."""
    if value == 0:
        return "0.0"
    return f"{value:#.3g}" if abs(value) < LARGE else f"{value:.1f}"


def clock(seconds: float) -> str:
    """Seconds as `m:ss` or `h:mm:ss`."""
    whole = max(0, round(seconds))
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _drawing(step: int, total: int, left: str, facts: list[str]) -> RenderableType:
    from rich.console import Group  # noqa: PLC0415
    from rich.progress_bar import ProgressBar  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    row = Table.grid(padding=(0, 2, 0, 0), expand=True)
    row.add_column(ratio=1)
    for _ in range(3):
        row.add_column(no_wrap=True)
    share = f"{100 * step / total:.0f} %"
    row.add_row(ProgressBar(total, step), share, f"{step:,} / {total:,} steps", f"{left} left")
    return Group(row, Text(" · ".join(facts), style="cyan"))
