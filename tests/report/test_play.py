from __future__ import annotations

from pathlib import Path

import imageio.v3 as iio
import numpy as np
import pytest
from running import call, train

from operant.core.errors import UsageError
from operant.envs.env_settings import EnvConfig
from operant.report.play import as_image, make_rendered_env


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train("train a2c --steps 20", tmp_path_factory.mktemp("runs"))


@pytest.mark.parametrize("suffix", ["gif", "mp4"])
def test_a_recording_shows_the_whole_episode(run: Path, tmp_path: Path, suffix: str) -> None:
    video = tmp_path / "new" / f"video.{suffix}"
    result = call(["play", str(run), "--record", str(video)])
    path, said = result.out.splitlines()
    frames = iio.imread(video)
    assert (result.code, path) == (0, str(video))
    steps = int(said.split()[-2])
    # A GIF joins frames in which nothing moved.
    assert len(frames) == steps + 1 if suffix == "mp4" else steps / 2 < len(frames) <= steps + 1
    assert frames.shape[1:] == (400, 600, 3)
    assert frames.std() > 10


def test_without_a_display_the_error_suggests_a_video(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    result = call(["play", str(run)])
    assert result.code == 2
    assert "there is no display to play on; write a video with --record out.mp4" in result.err


def test_a_video_of_another_format_is_refused(run: Path, tmp_path: Path) -> None:
    result = call(["play", str(run), "--record", str(tmp_path / "video.avi")])
    assert result.code == 2
    assert "video.avi: a video's name must end in .gif or .mp4, not '.avi'" in result.err
    assert not list(tmp_path.iterdir())


def test_a_video_that_cannot_be_written_is_refused(run: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = call(["play", str(run), "--record", str(tmp_path / "file" / "video.gif")])
    assert (result.code, result.err.count("\n")) == (2, 1)


def test_a_video_of_what_cannot_be_rendered_is_refused_before_training(tmp_path: Path) -> None:
    result = call("train ppo --env.id operant/ConstantReward-v0 --video gif", tmp_path)
    assert result.code == 2
    assert "cannot be rendered (render_mode 'rgb_array')" in result.err
    assert not list(tmp_path.iterdir())


def test_a_video_can_end_a_run(tmp_path: Path) -> None:
    made = train("train a2c --steps 20 --video gif", tmp_path)
    assert iio.imread(made / "videos" / "policy.gif").ndim == 4


@pytest.mark.timeout(60)  # without a limit it would not end
def test_a_recording_ends_where_the_environment_has_no_time_limit(tmp_path: Path) -> None:
    """The goal is 13 steps away, so that 12 never reach it."""
    made = train("train a2c --env.id CliffWalking-v1 --steps 20 --eval.max-steps 12", tmp_path)
    result = call(["play", str(made), "--record", str(tmp_path / "a.mp4"), "--episodes", "2"])
    said = result.out.splitlines()[1:]
    assert [line.partition(" in ")[2] for line in said] == ["12 steps"] * 2
    assert len(iio.imread(tmp_path / "a.mp4")) == 2 * 13


def test_colours_from_zero_to_one_become_bytes_and_small_pictures_large() -> None:
    seen = as_image(np.array([[[0.0, 0.5, 1.0]]]).repeat(10, 0).repeat(20, 1))
    assert seen.shape == (160, 320, 3)
    assert seen.dtype == np.uint8
    assert seen[0, 0].tolist() == [0, 128, 255]


@pytest.mark.parametrize("frame", [None, "text", np.zeros((4, 4))])
def test_what_is_no_picture_is_refused(frame: object) -> None:
    with pytest.raises(UsageError, match=r"render\(\) returned .*; expected an image"):
        as_image(frame)


@pytest.mark.parametrize(("env_id", "told"), [("HalfCheetah-v5", True), ("CartPole-v1", False)])
def test_mujoco_without_a_display_is_told_of_its_variable(
    monkeypatch: pytest.MonkeyPatch, env_id: str, told: bool
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("gladLoadGL error")

    monkeypatch.setattr("operant.report.play.make_env", fail)
    with pytest.raises(UsageError, match="gladLoadGL error") as raised:
        make_rendered_env(EnvConfig(id=env_id))
    assert ("MUJOCO_GL=egl" in str(raised.value)) is told
