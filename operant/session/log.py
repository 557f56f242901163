"""The metric log of a run: JSON lines, and TensorBoard events.

`metrics.jsonl` depends on the seed alone, `timing.jsonl` on the clock. A checkpoint keeps how long
the files were, and their SHA-256; a resumed run cuts them there, so that the log equals one of an
uninterrupted run, and says so if they were altered.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from operant.core.durable import open_regular
from operant.core.errors import UsageError

if TYPE_CHECKING:
    from operant.session.tensorboard_file import EventFile

METRICS, TIMING, EVENTS = "metrics.jsonl", "timing.jsonl", "tensorboard"
MAX_STEP = 2**63 - 1
_NONE = type(None)
COUNTERS = ("time/total_timesteps", "time/iterations")  # under `time/`, but not times
Series = tuple[np.ndarray[Any, np.dtype[np.int64]], np.ndarray[Any, np.dtype[np.float64]]]


class MetricLog:
    """Writes metrics to the files of a run; `resume_from` is a `state_dict` to go on from."""

    def __init__(
        self,
        directory: Path,
        resume_from: Mapping[str, Any] | None = None,
        warn: Callable[[str], None] = lambda message: None,
    ) -> None:
        begin = resume_from or {}
        self.step = int(begin.get("step", -1))
        hashes = begin.get("sha256", {})
        self._files = {
            name: LogFile(directory / name, begin.get(name, 0), hashes.get(name), warn)
            for name in (METRICS, TIMING)
        }
        # Where TensorBoard's events go, and the step from which on it discards earlier ones.
        self._events_at = directory / EVENTS, self.step + 1 if resume_from else None
        self._events: EventFile | None = None

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write one line of `metrics` at `step`, and each metric to TensorBoard."""
        self.step = step
        timing = {name for name in metrics if name.startswith("time/") and name not in COUNTERS}
        for file, names in ((METRICS, metrics.keys() - timing), (TIMING, timing)):
            parts = [f'"step": {step}']
            parts += [f"{json.dumps(n)}: {_number(v)}" for n, v in metrics.items() if n in names]
            if names:
                self._files[file].write(f"{{{', '.join(parts)}}}\n".encode())
        if self._events is None:  # not before training starts
            from operant.session.tensorboard_file import EventFile  # noqa: PLC0415  # slow to import

            self._events = EventFile(*self._events_at)
        self._events.write(step, metrics)
        self.flush()

    def flush(self) -> None:
        """Hand everything to the operating system, so that a killed process loses none of it."""
        if self._events is not None:
            self._events.flush()

    def state_dict(self) -> dict[str, Any]:
        """The sizes and hashes of the files, after their content has reached the disk."""
        self.flush()
        hashes = {name: file.sync() for name, file in self._files.items()}
        sizes = {name: file.size for name, file in self._files.items()}
        return {**sizes, "step": self.step, "sha256": hashes}

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        if self._events is not None:
            self._events.close()


def read_metrics(run: Path) -> dict[str, Series]:
    """Steps and values by metric name; an incomplete last line is ignored."""
    if (run / METRICS).is_symlink() or not (run / METRICS).is_file():
        raise UsageError(f"{run}: holds no {METRICS}; expected the directory of a run")
    points: dict[str, list[tuple[int, float]]] = {}
    for name in (METRICS, TIMING):
        for line in _lines(run / name):
            step = line.pop("step")
            for key, value in line.items():
                points.setdefault(key, []).append((step, math.nan if value is None else value))
    return {key: _series(found) for key, found in points.items()}


def _series(points: list[tuple[int, float]]) -> Series:
    steps, values = zip(*points, strict=True)
    return np.array(steps, np.int64), np.array(values, np.float64)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    if not path.exists():
        return
    try:
        plain = open_regular(path)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    with BufferedReader(plain) as file:
        for number, raw in enumerate(file, start=1):
            if not raw.endswith(b"\n"):
                return  # the writer was killed, or is still writing
            try:
                yield _numbers(json.loads(raw))
            except (ValueError, RecursionError):
                raise UsageError(f"{path}:{number}: not a line of metrics") from None


def _numbers(line: Any) -> dict[str, Any]:
    """A line of metrics; a ValueError if it has no step, or what is no number."""
    numbers = isinstance(line, dict) and all(type(x) in (int, float, _NONE) for x in line.values())
    step = line.get("step") if numbers else None
    if step is None or not -MAX_STEP <= step <= MAX_STEP or step != int(step):
        raise ValueError
    values = {name: None if x is None else _bounded(x) for name, x in line.items()}
    return values | {"step": int(step)}


def _bounded(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ValueError from None


class LogFile:
    """One file of the log, written at its end; begins by cutting off what comes after `size`."""

    def __init__(
        self, path: Path, size: int, sha256: str | None, warn: Callable[[str], None]
    ) -> None:
        self._file = open_regular(path, writing=True)
        kept = self._file.read(size)
        if len(kept) < size:
            warn(f"{path}: has {len(kept)} bytes, but had {size} at its checkpoint; lines are lost")
            kept = kept[: kept.rfind(b"\n") + 1]
        elif sha256 is not None and hashlib.sha256(kept).hexdigest() != sha256:
            warn(f"{path}: was altered since its checkpoint; what it shows may be wrong")
        self.size, self._hash = len(kept), hashlib.sha256(kept)
        self._file.truncate(self.size)
        self._file.seek(self.size)

    def write(self, line: bytes) -> None:
        """Add a line; one that the disk has no room for is not there at all."""
        written = 0
        try:
            while written < len(line):
                written += self._file.write(line[written:])
        except OSError:
            self._file.truncate(self.size)
            self._file.seek(self.size)
            raise
        self.size += len(line)
        self._hash.update(line)

    def sync(self) -> str:
        """The hash of all that was written, once it has reached the disk."""
        os.fsync(self._file.fileno())
        return self._hash.hexdigest()

    def close(self) -> None:
        self._file.close()


def _number(value: float) -> str:
    """The shortest text that is read as the same number; JSON has neither NaN nor infinity."""
    if isinstance(value, int | np.integer):
        return str(int(value))
    number = float(value)
    if math.isnan(number):
        return "null"
    if math.isinf(number):
        return "1e999" if number > 0 else "-1e999"  # overflows to infinity when read
    return repr(number)
