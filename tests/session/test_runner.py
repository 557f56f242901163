from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from running import AGENTS, COMMON, OFTEN, at_call, call, only_run, trace, train

from operant.session.checkpoint.checkpoint import listing, newest
from operant.session.run_settings import CheckpointConfig
from operant.session.runner import Runner

PPO, DQN = AGENTS["ppo"], AGENTS["dqn"]
SAVE, FINISH = (
    "operant.session.checkpoint.checkpoint:save",
    "operant.session.session:Session.finish",
)


def lines(run: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def trained(runs: Path, line: str, more: str) -> Path:
    assert call(f"{line} {COMMON} {more}", runs).code == 0
    return only_run(runs)


@pytest.fixture(scope="module", params=["ppo", "dqn"])
def agent(request: pytest.FixtureRequest) -> str:
    return AGENTS[request.param]


@pytest.fixture(scope="module")
def plain(agent: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(agent, tmp_path_factory.mktemp("plain"))


def weights(run: Path) -> bytes:
    (path,) = listing(run / "checkpoints")[-1:]
    network = newest(path.parent).state["container"]["agent"]["network"]
    return b"".join(x.numpy().tobytes() for x in network.values())


def test_evaluation_leaves_no_trace_in_training(agent: str, plain: Path, tmp_path: Path) -> None:
    other = trained(tmp_path, agent, "--eval.every 64 --eval.episodes 3")
    ours, theirs = (
        [{k: v for k, v in line.items() if not k.startswith("eval/")} for line in lines(run)]
        for run in (plain, other)
    )
    assert sum("eval/mean_reward" in line for line in lines(other)) > 5
    assert ours == theirs
    assert weights(plain) == weights(other)


def test_how_often_is_logged_does_not_change_what_is_learned(
    agent: str, plain: Path, tmp_path: Path
) -> None:
    other = trained(tmp_path, agent, "--log-every 100")
    assert len(lines(other)) != len(lines(plain))
    assert weights(plain) == weights(other)


def test_how_often_is_saved_changes_nothing(agent: str, plain: Path, tmp_path: Path) -> None:
    other = trained(tmp_path, agent, "--checkpoint.seconds 1000 --checkpoint.keep 1")
    assert len(listing(other / "checkpoints")) == 1
    assert trace(plain) == trace(other)


def test_another_seed_gives_another_run(agent: str, plain: Path, tmp_path: Path) -> None:
    assert weights(trained(tmp_path, agent, "--seed 4")) != weights(plain)


def test_the_log_has_the_names_that_people_know(plain: Path) -> None:
    (last,) = lines(plain)[-1:]
    timing = json.loads((plain / "timing.jsonl").read_text().splitlines()[-1])
    assert {"rollout/ep_rew_mean", "rollout/ep_len_mean", "time/total_timesteps"} <= last.keys()
    assert {"eval/mean_reward", "eval/mean_ep_length", "train/learning_rate"} <= last.keys()
    shares = [timing[f"time/share_{name}"] for name in ("acting", "stepping", "storing")]
    shares.append(timing["time/share_learning"])
    assert min(shares) > 0
    assert 0.5 < sum(shares) <= 1.001
    assert timing["time/fps"] == timing["time/frames_per_second"] > 0


def test_a_run_directory_says_where_it_came_from(plain: Path) -> None:
    origin = json.loads((plain / "run.json").read_text())
    assert origin["command"][:2] == ["operant", "train"]
    assert origin["seed"] == 3
    assert json.loads((plain / "done.json").read_text())["step"] == lines(plain)[-1]["step"]
    assert (plain / "learning-curve.png").stat().st_size > 10_000
    assert len(list((plain / "tensorboard").iterdir())) == 1
    assert not (plain / "error.txt").exists()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte."""
    where = tmp_path / "disk"
    where.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(where)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("mounting a small disk needs root")
    yield where
    subprocess.run(["umount", str(where)], check=True)


def fill(disk: Path) -> None:
    with (disk / "filler").open("wb", buffering=0) as file:
        for size in (1 << 14, 1):
            with suppress(OSError):
                while True:
                    file.write(bytes(size))


def test_a_disk_that_is_full_for_a_while_costs_one_checkpoint(
    disk: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    at_call(SAVE, 3, lambda: fill(disk), monkeypatch.setattr)
    at_call(SAVE, 4, (disk / "filler").unlink, monkeypatch.setattr)
    result = call(f"{PPO} {OFTEN} --no-checkpoint.best", disk / "runs")
    assert result.code == 0
    assert result.err.count("could not be saved") == 1
    assert "No space left on device; older checkpoints are untouched" in result.err
    monkeypatch.undo()
    assert trace(only_run(disk / "runs")) == trace(train(PPO, tmp_path / "runs"))


def test_three_checkpoints_that_cannot_be_saved_end_the_run_and_leave_the_older_ones(
    disk: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    at_call(SAVE, 4, lambda: fill(disk), monkeypatch.setattr)
    result = call(f"{PPO} {OFTEN} --no-checkpoint.best", disk / "runs")
    run = only_run(disk / "runs")
    assert result.code == 1
    assert result.err.count("training goes on") == 2
    assert (
        "could not be saved: No space left on device; older checkpoints are untouched"
        in (result.err.splitlines()[-1])
    )
    steps = [newest(path.parent).step for path in listing(run / "checkpoints")]
    assert len(steps) == 3
    monkeypatch.undo()
    (disk / "filler").unlink()
    assert call(["resume", str(run), "--quiet"]).code == 0
    assert trace(run) == trace(train(PPO, tmp_path / "runs"))


def test_a_last_checkpoint_that_cannot_be_saved_is_no_success(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_call(SAVE, 2, lambda: fill(disk), monkeypatch.setattr)
    at_call(FINISH, 1, (disk / "filler").unlink, monkeypatch.setattr)
    line = f"train a2c --steps 20 {COMMON} --checkpoint.seconds 1000 --no-checkpoint.best"
    result = call(line, disk / "runs")
    assert result.code == 1
    assert not (only_run(disk / "runs") / "done.json").exists()


@pytest.mark.parametrize(
    ("since", "saving", "due"),
    [
        (29.0, 0.0, False),  # half a minute has not passed
        (31.0, 1.5, True),
        (31.0, 1.6, False),  # a twentieth of the time would not be enough
        (201.0, 10.0, True),
    ],
)
def test_what_takes_long_to_save_is_saved_less_often(
    since: float, saving: float, due: bool
) -> None:
    config = SimpleNamespace(checkpoint=CheckpointConfig())
    runner: Any = SimpleNamespace(saved_at=time.monotonic() - since, saving=saving, config=config)
    assert Runner.due(runner) is due
