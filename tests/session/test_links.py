"""A run directory holds plain files: links and pipes in it are refused, never followed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from operant.core.errors import UsageError
from operant.session.log import METRICS, TIMING, MetricLog, read_metrics
from operant.session.run_directory import CONFIG, LOCK, find_run, lock

NAMES = [LOCK, METRICS, TIMING, "learning-curve.png", "checkpoints", "tensorboard"]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    path = tmp_path / "runs" / "one"
    path.mkdir(parents=True)
    (path / CONFIG).write_text("algorithm: ppo\n")
    return path


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    path = tmp_path / "victim"
    path.write_text("precious\n")
    return path


@pytest.mark.parametrize("name", NAMES)
def test_a_run_with_a_link_is_not_opened(run: Path, victim: Path, name: str) -> None:
    (run / name).symlink_to(victim)
    with pytest.raises(UsageError, match=f"{name}: is a link; .* plain files"):
        find_run(run, run.parent)
    with pytest.raises(UsageError, match="is a link"), lock(run):
        pass
    assert victim.read_text() == "precious\n"


def test_a_link_deeper_down_is_refused_too(run: Path, victim: Path) -> None:
    deep = run / "checkpoints" / "ckpt-000000000000"
    deep.mkdir(parents=True)
    (deep / "state.json").symlink_to(victim)
    with pytest.raises(UsageError, match=r"state\.json: is a link"):
        find_run(run, run.parent)


def test_a_pipe_is_refused_at_once(run: Path) -> None:
    os.mkfifo(run / TIMING)
    with pytest.raises(UsageError, match=r"timing\.jsonl: is neither a file nor a directory"):
        find_run(run, run.parent)


@pytest.mark.parametrize("name", [METRICS, TIMING])
def test_the_log_follows_no_link(run: Path, victim: Path, name: str) -> None:
    (run / name).symlink_to(victim)
    with pytest.raises(OSError, match="symbolic links"):
        MetricLog(run)
    assert victim.read_text() == "precious\n"


def test_reading_metrics_follows_no_link_and_waits_for_no_pipe(run: Path, victim: Path) -> None:
    (run / METRICS).symlink_to(victim)
    with pytest.raises(UsageError, match=METRICS):
        read_metrics(run)
    (run / METRICS).unlink()
    (run / METRICS).touch()
    os.mkfifo(run / TIMING)
    with pytest.raises(UsageError, match="not a regular file"):
        read_metrics(run)


def test_a_run_may_itself_be_reached_by_a_link(run: Path, tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to(run)
    assert find_run(tmp_path / "latest", run.parent) == run
