"""The metric log of a run: JSON lines that depend on nothing but the seed, and TensorBoard events.

`metrics.jsonl` holds what the seed decides, `timing.jsonl` what the clock does. A checkpoint keeps
how long the files were; a resumed run cuts them there, so that the log is as if it never stopped.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from operant.core.errors import UsageError

if TYPE_CHECKING:
    from operant.session.tensorboard_file import EventFile

METRICS, TIMING, EVENTS = "metrics.jsonl", "timing.jsonl", "tensorboard"
COUNTERS = ("time/total_timesteps", "time/iterations")  # under `time/`, yet the clock has no part
Series = tuple[np.ndarray[Any, np.dtype[np.int64]], np.ndarray[Any, np.dtype[np.float64]]]


class MetricLog:
    """Writes metrics as they come; `resume_offsets` is the `state_dict` to go on from."""

    def __init__(
        self,
        directory: Path,
        resume_offsets: Mapping[str, int] | None = None,
        warn: Callable[[str], None] = lambda message: None,
    ) -> None:
        begin = resume_offsets or {}
        self.step = int(begin.get("step", -1))
        self._files = {
            name: _open_at(directory / name, begin.get(name, 0), warn) for name in (METRICS, TIMING)
        }
        # Where TensorBoard's events go, and from which step on it is to forget earlier ones.
        self._place = directory / EVENTS, self.step + 1 if resume_offsets else None
        self._events: EventFile | None = None

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write one line of `metrics` at `step`, and each of them to TensorBoard."""
        self.step = step
        timing = {name for name in metrics if name.startswith("time/") and name not in COUNTERS}
        for file, names in ((METRICS, metrics.keys() - timing), (TIMING, timing)):
            parts = [f'"step": {step}']
            parts += [f"{json.dumps(n)}: {_number(v)}" for n, v in metrics.items() if n in names]
            if names:
                self._files[file].write(f"{{{', '.join(parts)}}}\n".encode())
        if self._events is None:  # only now: a run learns before its first line is due
            from operant.session.tensorboard_file import EventFile  # noqa: PLC0415  # slow to import

            self._events = EventFile(*self._place)
        self._events.write(step, metrics)
        self.flush()

    def flush(self) -> None:
        """Hand everything to the operating system: a killed process loses none of it."""
        for file in self._files.values():
            file.flush()
        if self._events is not None:
            self._events.flush()

    def state_dict(self) -> dict[str, int]:
        """How much has been written, once it is on the disk."""
        self.flush()
        for file in self._files.values():
            os.fsync(file.fileno())
        return {name: file.tell() for name, file in self._files.items()} | {"step": self.step}

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        if self._events is not None:
            self._events.close()


def read_metrics(run: Path) -> dict[str, Series]:
    """Steps and values by metric name; a last line that was cut short does not count."""
    if not (run / METRICS).is_file():
        raise UsageError(f"{run}: holds no {METRICS}; expected the directory of a run")
    points: dict[str, list[tuple[int, float]]] = {}
    for name in (METRICS, TIMING):
        for line in _lines(run / name):
            step = int(line.pop("step"))
            for key, value in line.items():
                points.setdefault(key, []).append((step, math.nan if value is None else value))
    return {key: _series(found) for key, found in points.items()}


def _series(points: list[tuple[int, float]]) -> Series:
    steps, values = zip(*points, strict=True)
    return np.array(steps, np.int64), np.array(values, np.float64)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            if not raw.endswith(b"\n"):
                return  # the writer was killed within it, or is still writing
            try:
                line = json.loads(raw)
                int(line["step"])
            except (ValueError, TypeError, KeyError):
                raise UsageError(f"{path}:{number}: not a line of metrics") from None
            yield line


def _open_at(path: Path, offset: int, warn: Callable[[str], None]) -> BinaryIO:
    """Open to write at `offset`, without what was written past it."""
    path.touch()
    size = path.stat().st_size
    if size < offset:
        warn(f"{path}: has {size} bytes, its checkpoint knew {offset}; the log has a gap")
        kept = path.read_bytes()
        offset = kept.rfind(b"\n") + 1
    file = path.open("r+b")
    file.truncate(offset)
    file.seek(offset)
    return file


def _number(value: float) -> str:
    """The shortest text that reads back as the same number; JSON has no NaN and no infinity."""
    if isinstance(value, int | np.integer):
        return str(int(value))
    number = float(value)
    if math.isnan(number):
        return "null"
    if math.isinf(number):
        return "1e999" if number > 0 else "-1e999"  # reads back as infinity everywhere
    return repr(number)
