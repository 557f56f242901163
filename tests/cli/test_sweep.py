"""Sweeps: which runs they are, that they go on where they stopped, and what they tell."""

from __future__ import annotations

import json
import os
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from running import call, train

import operant
from operant.cli.options import SweepOptions
from operant.cli.sweep import settings_as_flags
from operant.cli.sweep_plan import Plan, Planned, make_plan, parse_grid, read_plan, write_plan
from operant.core.errors import UsageError
from operant.core.schedule import Schedule

EXAMPLE = Path(__file__).parents[2] / "examples" / "sweep.py"
TINY = (
    "a2c --recipe none --env.num-envs 2 --network.hidden 8 --log-every 64 --eval.episodes 1 "
    "--eval.every 128"
)


def names(said: str) -> list[str]:
    return [line.partition(":")[0] for line in said.splitlines()[:-1]]


def test_a_dry_run_lists_every_combination_seed_by_seed(tmp_path: Path) -> None:
    grid = "--grid agent.lr=1e-3,linear(1e-3,0) --grid=network.hidden=[8,8]"
    result = call(f"sweep {TINY} --seeds 2 --seed 5 {grid} --dry-run", tmp_path / "runs")
    assert (result.code, list(tmp_path.iterdir())) == (0, [])
    hidden = "hidden_8_8"
    assert names(result.out) == [
        f"lr_{lr}-{hidden}-s{seed}" for seed in (5, 6) for lr in ("1e-3", "linear_1e-3_0")
    ]
    assert result.out.splitlines()[-1] == (
        f"4 runs in {tmp_path / 'runs' / 'sweep-a2c-CartPole-v1-lr-hidden'}"
    )
    assert "'--agent.lr=linear(1e-3,0)' '--network.hidden=[8,8]' --seed=5" in result.out


@pytest.mark.parametrize(
    ("grid", "said"),
    [
        ("agent.lrr=1,2", "--agent.lrr: unknown flag; did you mean '--agent.lr'?"),
        ("learning_rate=1,2", "--learning-rate: unknown flag; did you mean '--agent.lr'?"),
        ("agent.gamma=0.9,high", "agent.gamma = 'high': expected a number"),
        ("agent.gamma=0.9,1.5", "agent.gamma = 1.5: expected a number from 0 to 1"),
        ("agent.lr", "--grid agent.lr: expected setting=value,value"),
        ("agent.lr=1,,2", "--grid agent.lr=1,,2: expected setting=value,value"),
        ("agent.lr=1e-3,0.001", "--grid: agent.lr=1e-3 and agent.lr=0.001 are the same"),
        ("seed=1,2", "--grid seed: --seeds 5 makes five runs"),
        ("runs=a,b", "--grid runs: is no setting of a run"),
        ("env.id=CartPole-v1,NoSuch-v1", "NoSuch-v1"),
        ("agent.lr=1 --grid agent.lr=2", "--grid agent.lr=2: agent.lr has values already"),
        ("--seeds 2", "--grid: a value is missing"),
    ],
)
def test_a_grid_is_checked_before_anything_starts(grid: str, said: str, tmp_path: Path) -> None:
    result = call(f"sweep {TINY} --grid {grid}", tmp_path)
    assert (result.code, said in result.err) == (2, True), result.err
    assert not list(tmp_path.iterdir())


def test_settings_that_do_not_fit_together_are_refused_with_their_combination(
    tmp_path: Path,
) -> None:
    grid = "--grid agent.gamma=0.9 --grid env.id=CartPole-v1,Pendulum-v1"
    result = call(f"sweep dqn --steps 20 {grid}", tmp_path)
    assert result.code == 2
    assert "agent.gamma=0.9 env.id=Pendulum-v1: " in result.err


def test_a_sweep_is_run_compared_and_not_run_again(tmp_path: Path) -> None:
    line = f"sweep {TINY} --steps 128 --seeds 1 --grid agent.lr=1e-3,3e-4 --name mine"
    first = call(line, tmp_path)
    assert (first.code, first.err) == (0, "")
    sweep = tmp_path / "mine"
    assert f"2 runs, {len(os.sched_getaffinity(0))} at a time, in {sweep}\n" in first.out
    table = first.out[first.out.index("CartPole-v1: eval/mean_reward") :]
    assert [row.split()[:2] for row in table.splitlines()[2:4]] == [
        ["lr", "0.001"],
        ["lr", "0.0003"],
    ]
    assert (sweep / "learning-curve.png").read_bytes()[:4] == b"\x89PNG"
    logs = {path: path.read_bytes() for path in sweep.glob("*.log")}
    for again in (call(line, tmp_path), call("sweep --resume mine", tmp_path)):
        assert (again.code, again.out.endswith(table)) == (0, True)
        assert "2 of 2 runs are finished already" in again.out
    assert {path: path.read_bytes() for path in sweep.glob("*.log")} == logs
    more = call(f"{line} --seeds 2 --dry-run", tmp_path)
    assert names(more.out)[2:] == ["lr_1e-3-s2", "lr_3e-4-s2"]


def test_other_settings_under_the_same_name_are_refused(tmp_path: Path) -> None:
    options = SweepOptions(seeds=1, runs=str(tmp_path), name="mine")
    write_plan(make_plan(options, TINY.split(), {}, []))
    with pytest.raises(UsageError, match="holds a sweep with other settings; choose another"):
        write_plan(make_plan(options, [*TINY.split(), "--steps", "99"], {}, []))
    (tmp_path / "other").mkdir()
    with pytest.raises(UsageError, match="other: exists and is no sweep; choose another --name"):
        write_plan(make_plan(SweepOptions(runs=str(tmp_path), name="other"), TINY.split(), {}, []))


def test_a_run_that_fails_does_not_end_the_others(tmp_path: Path) -> None:
    options = SweepOptions(seeds=2, runs=str(tmp_path), name="mine")
    write_plan(make_plan(options, [*TINY.split(), "--steps=64"], {}, []))
    (tmp_path / "mine" / "a2c-s1").mkdir()  # in its way
    result = call("sweep --resume mine --quiet", tmp_path)
    assert result.code == 1
    assert (tmp_path / "mine" / "a2c-s2" / "done.json").exists()
    told = result.out.splitlines()[-1]
    assert told.startswith("failed: a2c-s1: exit code 2: operant: error: name = 'a2c-s1'")
    assert told.endswith(f"(all it said: {tmp_path / 'mine' / 'a2c-s1.log'})")


@pytest.mark.parametrize("words", [["--env.id", "own:Env"], ["--env.id=own:Env"], ["--trust"]])
def test_a_sweep_that_names_code_is_signed_and_that_of_another_refused(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Plan(tmp_path / "mine", [], [Planned("one", ["a2c", *words])])
    write_plan(plan)
    assert read_plan(plan.directory) == plan
    file = plan.directory / "sweep.json"
    file.write_text(file.read_text().replace("a2c", "ppo"))
    result = call(f"sweep --resume {plan.directory}")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "and was not made by you on this machine" in result.err
    assert read_plan(plan.directory, trust=True).runs == [Planned("one", ["ppo", *words])]
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
    file.write_text(file.read_text().replace("ppo", "a2c"))
    with pytest.raises(UsageError, match="would import"):
        read_plan(plan.directory)


@pytest.mark.slow
def test_a_sweep_that_is_stopped_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    settings = f"{TINY} --seed 3 --threads 1 --steps 4000 --checkpoint.seconds 0.2"
    line = f"sweep {settings} --seeds 2 --jobs 1 --name mine --runs {tmp_path}"
    process = subprocess.Popen(
        [sys.executable, "-m", "operant", *line.split()], stdout=subprocess.PIPE, text=True
    )
    log = tmp_path / "mine" / "a2c-s3" / "metrics.jsonl"
    limit = time.monotonic() + 120
    while not (log.exists() and log.stat().st_size) and time.monotonic() < limit:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT
    assert f"continue with: operant sweep --resume {tmp_path / 'mine'}" in said
    assert "0 of 2 runs are finished" in said
    assert call(f"sweep --resume {tmp_path / 'mine'}").code == 0
    assert "stopped at step" in (tmp_path / "mine" / "a2c-s3.log").read_text()
    whole = train(settings.replace("a2c", "train a2c", 1), tmp_path / "whole")
    assert log.read_bytes() == (whole / "metrics.jsonl").read_bytes()


def test_python_gives_the_rows(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "recipe": "none",
        "env": {"num_envs": 2},
        "network": {"hidden": (8,)},
        "eval": {"episodes": 1},
    }
    found = operant.sweep(
        "a2c",
        "CartPole-v1",
        seeds=1,
        grid={"agent.normalize_advantage": [True, False]},
        steps=64,
        runs=tmp_path,
        quiet=True,
        **settings,
    )
    assert [row.label for row in found.rows] == [
        "normalize_advantage true",
        "normalize_advantage false",
    ]
    assert all(row.values[0] >= 8 for row in found.rows)


def test_python_refuses_what_no_flag_can_say() -> None:
    with pytest.raises(UsageError, match="expected a name, as runs are other processes"):
        operant.sweep("a2c", object())  # type: ignore[arg-type]  # what is refused
    refused: list[Any] = [1e-3, "1e-3,3e-4", []]
    for values in refused:
        with pytest.raises(UsageError, match=r"grid\['agent.lr'\] = .*: expected a list of values"):
            operant.sweep("a2c", grid={"agent.lr": values})


def test_a_configuration_file_is_found_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a2c.yaml").write_text("algorithm: a2c\nsteps: 77\n")
    for words in (["--config", "a2c.yaml"], ["--config=a2c.yaml"]):
        (run,) = make_plan(SweepOptions(seeds=1), words, {}, []).runs
        assert str(tmp_path / "a2c.yaml") in run.argv[-2]


def test_settings_of_python_become_flags() -> None:
    tree = {
        "steps": 100,
        "agent": {"lr": Schedule(1e-3), "double": True},
        "env": {"id": "X-v1", "kwargs": {"size": 3, "map": "4x4", "rows": [1, 2]}},
        "network": {"hidden": (64, 64), "separate": None},
    }
    assert list(settings_as_flags(tree)) == [
        "--steps=100",
        "--agent.lr=0.001",
        "--agent.double=true",
        "--env.id=X-v1",
        "--env.kwargs",
        "size=3",
        'map="4x4"',
        "rows=[1, 2]",
        "--network.hidden=[64,64]",
        "--network.separate=none",
    ]


def test_values_of_a_grid_are_split_outside_of_brackets() -> None:
    found = parse_grid(["agent.lr=linear(1, 0),2", "network.hidden=[8,8],[4]"])
    assert found == {"agent.lr": ["linear(1, 0)", "2"], "network.hidden": ["[8,8]", "[4]"]}


def test_the_example_compares_two_learning_rates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    said = capsys.readouterr().out
    assert "best: lr 0.00" in said
    (sweep,) = (tmp_path / "runs").iterdir()
    assert len(json.loads((sweep / "sweep.json").read_text())["runs"]) == 4
