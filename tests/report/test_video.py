from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import imageio_ffmpeg
import numpy as np
import pytest
from PIL import Image, ImageSequence

from operant.core.errors import UsageError
from operant.report.video import write_video


def frames(count: int, height: int = 33, width: int = 47) -> Iterator[np.ndarray[Any, Any]]:
    for i in range(count):
        yield np.full((height, width, 3), 8 * i, np.uint8)


def stills(path: Path) -> tuple[int, tuple[int, int], int]:
    """How many frames a GIF has, their size, and the milliseconds that each is shown."""
    with Image.open(path) as image:
        duration = image.info["duration"]
        return len(list(ImageSequence.Iterator(image))), image.size, duration


def test_a_gif_holds_every_frame_at_its_speed(tmp_path: Path) -> None:
    write_video(tmp_path / "out.gif", frames(10), fps=20)
    assert stills(tmp_path / "out.gif") == (10, (47, 33), 50)


def test_a_fast_gif_leaves_frames_out_and_keeps_its_speed(tmp_path: Path) -> None:
    write_video(tmp_path / "out.gif", frames(12), fps=100)
    assert stills(tmp_path / "out.gif") == (6, (47, 33), 20)


def test_an_mp4_of_odd_size_gets_even_sides_and_all_frames(tmp_path: Path) -> None:
    write_video(tmp_path / "new" / "out.mp4", frames(25), fps=25)
    reader = imageio_ffmpeg.read_frames(tmp_path / "new" / "out.mp4")
    meta = next(reader)
    assert (meta["size"], meta["fps"]) == ((48, 34), 25.0)
    shades = [np.frombuffer(frame, np.uint8).mean() for frame in reader]
    np.testing.assert_allclose(shades, 8 * np.arange(25), atol=4)


def test_frames_are_taken_one_by_one(tmp_path: Path) -> None:
    def failing() -> Iterator[np.ndarray[Any, Any]]:
        yield from frames(3)
        raise RuntimeError("the environment died")

    with pytest.raises(RuntimeError, match="died"):
        write_video(tmp_path / "out.mp4", failing(), fps=10)
    assert list(tmp_path.iterdir()) == []  # no video that is cut short


@pytest.mark.parametrize("name", ["out.avi", "out", "out.png"])
def test_another_kind_of_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"a video's name must end in \.gif or \.mp4"):
        write_video(tmp_path / name, frames(2), fps=10)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (np.zeros((4, 4), np.uint8), r"frame 0 is uint8 \(4, 4\); expected"),
        (np.zeros((4, 4, 3), np.float32), "frame 0 is float32"),
    ],
)
def test_what_is_no_picture_is_refused(
    tmp_path: Path, frame: np.ndarray[Any, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        write_video(tmp_path / "out.gif", [frame], fps=10)


def test_a_change_of_size_no_frames_and_no_speed_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"frame 1 is \(5, 4, 3\), those before it \(4, 4, 3\)"):
        write_video(tmp_path / "a.gif", [*frames(1, 4, 4), *frames(1, 5, 4)], fps=10)
    with pytest.raises(UsageError, match="no frames"):
        write_video(tmp_path / "a.gif", [], fps=10)
    with pytest.raises(UsageError, match="fps = 0: expected a number above 0"):
        write_video(tmp_path / "a.gif", frames(1), fps=0)
