from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from operant.core.errors import UsageError
from operant.session.run_directory import create_run, find_run, lock, provenance

HOLD = """
import sys, time
from pathlib import Path
from operant.session.run_directory import lock
with lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def made(root: Path, name: str, finished: bool = False) -> Path:
    run = root / name
    run.mkdir(parents=True)
    (run / "config.yaml").write_text("seed: 1\n")
    if finished:
        (run / "done.json").write_text("{}")
    return run


def test_runs_of_one_name_get_directories_of_their_own(tmp_path: Path) -> None:
    runs = {create_run(tmp_path / "runs", "ppo-ALE/Pong-v5-1") for _ in range(3)}
    assert len(runs) == 3
    assert all(run.parent == tmp_path / "runs" and run.is_dir() for run in runs)
    assert all(run.name.startswith("ppo-ALE-Pong-v5-1-20") for run in runs)
    assert not any(list(run.iterdir()) for run in runs)


def test_a_file_in_the_place_of_the_root_is_refused(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("")
    with pytest.raises(UsageError, match="runs: is a file; expected a directory"):
        create_run(tmp_path / "runs", "ppo")


def test_a_root_that_cannot_be_written_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="cannot be written: "):
        create_run(Path("/proc/runs"), "ppo")


def test_a_second_process_is_refused_with_the_number_of_the_first(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(UsageError, match=f"in use by process {holder.pid};"), lock(tmp_path):
        pass
    holder.kill()
    holder.wait()
    with lock(tmp_path):  # the kernel let go of it
        assert (tmp_path / "run.lock").read_text() == f"{os.getpid()}\n"


def test_a_run_that_cannot_be_locked_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"), lock(tmp_path / "missing"):
        pass


def test_provenance_names_versions_command_and_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parent)
    origin = provenance(["operant", "train"], agent="ppo", env="CartPole-v1", seed=3)
    assert origin["command"] == ["operant", "train"]
    assert (origin["agent"], origin["env"], origin["seed"]) == ("ppo", "CartPole-v1", 3)
    assert {"operant", "python", "torch", "numpy", "gymnasium", "platform"} <= set(origin)
    git = origin["git"]
    assert git is None or len(git["commit"]) == 40


def test_outside_a_repository_there_is_no_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert provenance([])["git"] is None


def test_the_newest_unfinished_run_is_found(tmp_path: Path) -> None:
    for age, (name, finished) in enumerate((("c", True), ("a", False), ("b", False))):
        run = made(tmp_path, name, finished)
        os.utime(run / "config.yaml", (time.time() - age, time.time() - age))
    (tmp_path / "empty").mkdir()
    assert find_run(None, tmp_path, unfinished_only=True).name == "a"
    assert find_run(None, tmp_path).name == "c"


def test_a_run_is_found_by_path_and_by_name(tmp_path: Path) -> None:
    run = made(tmp_path, "ppo-1")
    assert find_run(run, tmp_path / "elsewhere") == run
    assert find_run("ppo-1", tmp_path) == run


def test_a_wrong_name_gets_the_nearest_run(tmp_path: Path) -> None:
    made(tmp_path, "ppo-CartPole-v1-1-20250101-000000")
    with pytest.raises(UsageError, match="did you mean 'ppo-CartPole-v1-1-20250101-000000'"):
        find_run("ppo-CartPole-v1-1-20250101", tmp_path)


def test_a_directory_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is not a run; expected a directory with config\.yaml"):
        find_run(tmp_path, tmp_path)


def test_without_runs_the_error_says_how_to_begin(tmp_path: Path) -> None:
    made(tmp_path, "old", finished=True)
    with pytest.raises(UsageError, match=r"holds no unfinished run; .*operant train"):
        find_run(None, tmp_path, unfinished_only=True)
