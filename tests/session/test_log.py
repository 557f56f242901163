from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import (
    EventAccumulator,
)

from operant.core.errors import UsageError
from operant.session.log import METRICS, MetricLog, read_metrics


def write_steps(log: MetricLog, steps: range) -> None:
    for step in steps:
        log.write(step, {"rollout/ep_rew_mean": step / 3, "time/fps": 1.0, "time/iterations": step})


def scalars(run: Path, tag: str) -> list[tuple[int, float]]:
    events = EventAccumulator(str(run / "tensorboard"))
    events.Reload()
    return [(event.step, event.value) for event in events.Scalars(tag)]


def test_what_the_seed_decides_and_what_the_clock_does_go_apart(tmp_path: Path) -> None:
    log = MetricLog(tmp_path)
    log.write(5, {"train/loss": 0.1, "time/fps": 9.5, "time/total_timesteps": 5})
    log.close()
    assert (tmp_path / "metrics.jsonl").read_text() == (
        '{"step": 5, "train/loss": 0.1, "time/total_timesteps": 5}\n'
    )
    assert (tmp_path / "timing.jsonl").read_text() == '{"step": 5, "time/fps": 9.5}\n'


def test_every_float_reads_back_as_the_same_bits(tmp_path: Path) -> None:
    values = [0.1 + 0.2, 1e-310, -0.0, math.nan, math.inf, -math.inf, float(np.float32(0.1))]
    log = MetricLog(tmp_path)
    for step, value in enumerate(values):
        log.write(step, {"train/x": value})
    log.close()
    read = read_metrics(tmp_path)["train/x"][1]
    assert read.tobytes() == np.array(values).tobytes()
    assert json.loads((tmp_path / "metrics.jsonl").read_text().splitlines()[3])["train/x"] is None


def test_numpy_numbers_are_written_as_plain_ones(tmp_path: Path) -> None:
    log = MetricLog(tmp_path)
    log.write(1, {"train/n": np.float64(3).astype(int), "train/x": np.float64(0.5)})
    log.close()
    assert (tmp_path / "metrics.jsonl").read_text() == (
        '{"step": 1, "train/n": 3, "train/x": 0.5}\n'
    )


def test_a_resumed_log_is_bit_identical_to_one_never_stopped(tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    for run in (whole, parts):
        run.mkdir()
    log = MetricLog(whole)
    write_steps(log, range(10))
    log.close()
    log = MetricLog(parts)
    write_steps(log, range(6))
    state = log.state_dict()
    write_steps(log, range(6, 8))  # lost: killed before the next checkpoint
    log = MetricLog(parts, state)
    assert (parts / "metrics.jsonl").stat().st_size == state["metrics.jsonl"]  # cut at once
    write_steps(log, range(6, 10))
    assert (parts / "metrics.jsonl").read_bytes() == (whole / "metrics.jsonl").read_bytes()


def test_tensorboard_forgets_what_was_written_after_the_checkpoint(tmp_path: Path) -> None:
    log = MetricLog(tmp_path)
    write_steps(log, range(4))
    state = log.state_dict()
    log.write(4, {"rollout/ep_rew_mean": -1.0})
    log.close()
    log = MetricLog(tmp_path, state)
    log.write(4, {"rollout/ep_rew_mean": 44.0})
    log.close()
    points = scalars(tmp_path, "rollout/ep_rew_mean")
    assert [step for step, _ in points] == [0, 1, 2, 3, 4]
    assert points[-1][1] == 44.0


def test_a_log_shorter_than_its_checkpoint_is_said_to_have_a_gap(tmp_path: Path) -> None:
    log = MetricLog(tmp_path)
    write_steps(log, range(3))
    state = log.state_dict()
    (tmp_path / "metrics.jsonl").write_text('{"step": 0, "a": 1}\n{"step": 1, "a')
    heard: list[str] = []
    log = MetricLog(tmp_path, state, heard.append)
    log.write(3, {"a": 2})
    assert len(heard) == 1
    assert read_metrics(tmp_path)["a"][0].tolist() == [0, 3]


def test_a_torn_last_line_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "a": 2.0}\n{"step": 2, "a": 3')
    steps, values = read_metrics(tmp_path)["a"]
    assert (steps.tolist(), values.tolist()) == ([1], [2.0])


@pytest.mark.parametrize("line", ["nonsense", "[1]", "5", '{"a": 1}'])
def test_a_line_that_is_no_metrics_is_named_with_its_number(tmp_path: Path, line: str) -> None:
    (tmp_path / "metrics.jsonl").write_text(f'{{"step": 1, "a": 2.0}}\n{line}\n')
    with pytest.raises(UsageError, match=r"metrics\.jsonl:2: not a line of metrics"):
        read_metrics(tmp_path)


def test_a_directory_without_metrics_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds no metrics\.jsonl"):
        read_metrics(tmp_path)


def test_a_log_that_was_altered_since_its_checkpoint_is_told(tmp_path: Path) -> None:
    log = MetricLog(tmp_path)
    log.write(1, {"loss": 1.5})
    log.write(2, {"loss": 2.5})
    state = log.state_dict()
    log.close()
    path = tmp_path / METRICS
    path.write_bytes(path.read_bytes().replace(b"1.5", b"1.6"))
    told: list[str] = []
    MetricLog(tmp_path, state, told.append).close()
    assert [f"{path}: was altered since its checkpoint; what it shows may be wrong"] == told


def test_a_log_that_goes_on_after_resuming_is_still_known_by_its_hash(tmp_path: Path) -> None:
    log = MetricLog(tmp_path)
    log.write(1, {"loss": 1.5})
    state = log.state_dict()
    log.close()
    told: list[str] = []
    again = MetricLog(tmp_path, state, told.append)
    again.write(2, {"loss": 2.5})
    state = again.state_dict()
    again.close()
    MetricLog(tmp_path, state, told.append).close()
    assert told == []
