"""Comparing and plotting runs from the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from logged_runs import logged
from running import call


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for lr in (0.001, 0.0003):
        for seed in (1, 2):
            name = tmp_path / "sweep" / f"lr{lr}-s{seed}"
            logged(name, [0.0, seed * 1e4 * lr], seed=seed, agent={"lr": lr})
    return tmp_path


def test_a_directory_of_runs_becomes_a_table(runs: Path) -> None:
    result = call(["compare", str(runs / "sweep")])
    assert (result.code, result.err) == (0, "")
    assert [line.split()[:4] for line in result.out.splitlines()[2:]] == [
        ["lr", "0.0003", "2", "4.50"],
        ["lr", "0.001", "2", "15.0"],
    ]


def test_without_names_all_runs_are_compared(runs: Path) -> None:
    assert call("compare", runs / "sweep").out == call(["compare", str(runs / "sweep")]).out


def test_as_json_a_program_can_read_it(runs: Path) -> None:
    result = call("compare sweep --json --metric rollout/ep_rew_mean", runs)
    rows = json.loads(result.out)
    assert [row["settings"] for row in rows] == [{"agent.lr": 0.0003}, {"agent.lr": 0.001}]
    assert [row["iqm"] for row in rows] == pytest.approx([4.5, 15.0])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("compare swep", "swep: no such run"),
        ("compare sweep --metric eval/mean", "no values of 'eval/mean' yet; did you mean"),
        ("compare --metrics x", "--metrics: unknown flag; did you mean '--metric'?"),
    ],
)
def test_what_cannot_be_compared_is_refused(line: str, said: str, runs: Path) -> None:
    result = call(line, runs)
    assert (result.code, said in result.err) == (2, True), result.err


def test_it_needs_neither_torch_nor_scipy(runs: Path) -> None:
    code = (
        f"import sys; from operant.cli.main import main; main(['compare', {str(runs / 'sweep')!r}])"
        "; print({'torch', 'scipy', 'gymnasium', 'matplotlib'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"


def test_plot_puts_the_picture_of_a_sweep_into_its_directory(runs: Path) -> None:
    result = call("plot sweep", runs)
    assert (result.code, result.out) == (0, f"{runs / 'sweep' / 'learning-curve.png'}\n")
    assert (runs / "sweep" / "learning-curve.png").read_bytes()[:4] == b"\x89PNG"
