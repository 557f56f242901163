"""Tables of what groups of runs reached."""

from __future__ import annotations

import json
from pathlib import Path

from logged_runs import logged

from operant.report.comparison import compare_runs


def timed(run: Path, *lines: tuple[int, float]) -> Path:
    """The run with steps per second in its log."""
    texts = [json.dumps({"step": step, "time/fps": fps}) for step, fps in lines]
    (run / "timing.jsonl").write_text("".join(f"{text}\n" for text in texts))
    return run


def seeds_of(root: Path, ends: list[float], lr: float = 0.001) -> list[Path]:
    return [
        logged(root / f"{lr}-{i}", [0.0, end], seed=i, agent={"lr": lr})
        for i, end in enumerate(ends, 1)
    ]


def test_the_last_evaluations_of_seeds_are_summed_up(tmp_path: Path) -> None:
    (row,) = compare_runs(seeds_of(tmp_path, [2.0, 4.0, 0.0, 100.0])).rows
    assert (row.label, row.seeds, row.iqm) == ("ppo", [1, 2, 3, 4], 3.0)
    assert row.values == [2.0, 4.0, 0.0, 100.0]
    assert row.interval is not None
    assert 0.0 <= row.interval[0] < 3.0 < row.interval[1] <= 100.0


def test_steps_per_second_are_those_of_the_whole_run(tmp_path: Path) -> None:
    run = timed(logged(tmp_path / "a", [1.0]), (100, 100.0), (200, 50.0))  # one and two seconds
    (row,) = compare_runs([run]).rows
    assert row.steps_per_second == 200 / 3


def test_the_table_has_a_row_for_each_group(tmp_path: Path) -> None:
    runs = seeds_of(tmp_path, [20.0, 30.0]) + seeds_of(tmp_path, [7.25], lr=0.0003)
    timed(runs[-1], (100, 1234.0))
    assert str(compare_runs(runs)).splitlines() == [
        "CartPole-v1: eval/mean_reward",
        "           seeds   IQM  95 % interval    min to max  steps  steps/s",
        "lr 0.001       2  25.0   20.0 to 30.0  20.0 to 30.0    100        –",
        "lr 0.0003      1  7.25              –  7.25 to 7.25    100    1,234",
    ]


def test_every_environment_has_a_table_of_its_own(tmp_path: Path) -> None:
    envs = ("CartPole-v1", "Acrobot-v1")
    runs = [logged(tmp_path / env, [1.0], env={"id": env}) for env in envs]
    parts = str(compare_runs(runs)).split("\n\n")
    assert [part.partition(":")[0] for part in parts] == [*envs]


def test_a_long_label_goes_on_below(tmp_path: Path) -> None:
    agent = {"lr": 0.5, "gamma": 0.1, "clip": 0.9}
    runs = [
        logged(tmp_path / "a", [1.0]),
        logged(tmp_path / "b", [1.0], agent=agent, steps_per_chunk=7),
    ]
    lines = str(compare_runs(runs)).splitlines()
    assert lines[-1].strip() == "steps_per_chunk 7"
    assert max(map(len, lines)) <= 100


def test_runs_of_different_lengths_say_so(tmp_path: Path) -> None:
    runs = [logged(tmp_path / "a", [1.0, 2.0]), logged(tmp_path / "b", [1.0], seed=2)]
    assert "0 to 100" in str(compare_runs(runs))


def test_as_json_it_is_an_object_for_each_group(tmp_path: Path) -> None:
    found = compare_runs(seeds_of(tmp_path, [1.0, 5.0]), "rollout/ep_rew_mean").as_json()
    (row,) = json.loads(json.dumps(found))
    assert (row["iqm"], row["min"], row["max"], row["steps"]) == (3.0, 1.0, 5.0, [100, 100])
    assert (row["metric"], row["env"], row["interval"]) == (
        "rollout/ep_rew_mean",
        "CartPole-v1",
        [1.0, 5.0],
    )
