"""Video files, written frame by frame."""

from __future__ import annotations

import itertools
import math
import os
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from operant.core.errors import UsageError
from operant.session.stop_signal import stop_signals

Frame = np.ndarray[Any, np.dtype[np.uint8]]
SUFFIXES = (".gif", ".mp4")
MAX_GIF_FPS = 50


def write_video(path: Path, frames: Iterable[Frame], fps: float) -> None:
    """Write `frames`, each uint8 `[height, width, 3]`, to a .gif or .mp4 file."""
    if path.suffix.lower() not in SUFFIXES:
        kinds = " or ".join(SUFFIXES)
        raise UsageError(f"{path}: a video's name must end in {kinds}, not {path.suffix!r}")
    if not fps > 0:
        raise UsageError(f"fps = {fps!r}: expected a number above 0")
    checked = _checked(path, frames)
    first = next(checked, None)
    if first is None:
        raise UsageError(f"{path}: there are no frames to write")
    # Renamed when complete, so that no incomplete video has the final name.
    partial = path.with_name(f".partial-{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write = _write_gif if path.suffix.lower() == ".gif" else _write_mp4
        write(partial, itertools.chain([first], checked), fps)
        os.replace(partial, path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):  # the directory may not exist
            partial.unlink(missing_ok=True)


def _checked(path: Path, frames: Iterable[Frame]) -> Iterator[Frame]:
    shape: tuple[int, ...] | None = None
    for i, frame in enumerate(frames):
        if frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3:
            seen = f"{frame.dtype} {frame.shape}"
            raise UsageError(f"{path}: frame {i} is {seen}; expected uint8 (height, width, 3)")
        shape = shape or frame.shape
        if frame.shape != shape:
            raise UsageError(f"{path}: frame {i} is {frame.shape}, those before it {shape}")
        yield frame


def _write_gif(path: Path, frames: Iterable[Frame], fps: float) -> None:
    from PIL import Image  # noqa: PLC0415  # slow to import, and most runs write no video

    # Viewers slow down GIFs above fifty frames per second, so frames are left out instead.
    stride = math.ceil(fps / MAX_GIF_FPS)
    stills = (Image.fromarray(frame) for frame in itertools.islice(frames, 0, None, stride))
    milliseconds = round(100 * stride / fps) * 10  # the format counts hundredths of a second
    first = next(stills)
    first.save(path, save_all=True, append_images=stills, duration=milliseconds, loop=0)


def _write_mp4(path: Path, frames: Iterable[Frame], fps: float) -> None:
    import imageio_ffmpeg  # noqa: PLC0415

    writer = None
    try:
        for frame in map(_even, frames):
            if writer is None:
                size = (frame.shape[1], frame.shape[0])
                writer = imageio_ffmpeg.write_frames(str(path), size, fps=fps, macro_block_size=1)
                with _signals_wait():
                    writer.send(None)  # starts the encoder
                    writer.send(np.ascontiguousarray(frame))
                continue
            with _signals_wait():
                writer.send(np.ascontiguousarray(frame))
    finally:
        if writer is not None:
            writer.close()


@contextmanager
def _signals_wait() -> Iterator[None]:
    """Let a signal wait until the encoder has a whole frame.

    Half of one makes it complain, and one that was only just started is not ended.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # which gets no signals
        return
    came: list[int] = []
    numbers = stop_signals()
    before = [signal.signal(n, lambda number, frame: came.append(number)) for n in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


def _even(frame: Frame) -> Frame:
    """Repeat the last row or column of an odd side: the codec needs even ones for colour."""
    height, width = frame.shape[:2]
    return np.pad(frame, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
