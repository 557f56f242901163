"""TensorBoard event files, written without a thread of their own."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path

from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.summary.writer import record_writer


class EventFile:
    """One file of scalars; TensorBoard discards those of earlier files from `purge_step` on."""

    def __init__(self, directory: Path, purge_step: int | None = None) -> None:
        directory.mkdir(exist_ok=True)
        # Nanoseconds: a run resumed within a second must not write to the previous file.
        name = f"events.out.tfevents.{time.time_ns()}.{socket.gethostname()}.{os.getpid()}"
        self._records = record_writer.RecordWriter((directory / name).open("xb"))
        self._add(event_pb2.Event(wall_time=time.time(), file_version="brain.Event:2"))
        if purge_step is not None:
            start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
            self._add(event_pb2.Event(wall_time=time.time(), step=purge_step, session_log=start))

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        summary = summary_pb2.Summary()
        for name, value in metrics.items():
            summary.value.add(tag=name, simple_value=float(value))
        self._add(event_pb2.Event(wall_time=time.time(), step=step, summary=summary))

    def flush(self) -> None:
        self._records.flush()

    def close(self) -> None:
        self._records.close()

    def _add(self, event: event_pb2.Event) -> None:
        self._records.write(event.SerializeToString())
