"""`operant doctor` finds what is wrong with a run, and changes nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import operant
from operant.cli.main import main
from operant.session.checkpoint import checkpoint
from operant.session.log import METRICS


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    settings: dict[str, Any] = {"steps": 600, "log_every": 200, "agent": {"length": 8}}
    settings |= {"network": {"hidden": [8]}, "eval": {"episodes": 1}}
    settings["checkpoint"] = {"seconds": 1e-9}
    return operant.train("a2c", "CartPole-v1", runs=root, quiet=True, **settings).path


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "run"))


def examined(run: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    code = main(["doctor", str(run), "--json"])
    return code, json.loads(capsys.readouterr().out)


def newest(run: Path) -> Path:
    return checkpoint.listing(run / "checkpoints")[-1]


def last_step(run: Path) -> int:
    return int(json.loads((run / "done.json").read_text())["step"])


def test_a_run_that_is_whole_is_healthy(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted((p, p.stat().st_mtime_ns) for p in run.rglob("*"))
    code, found = examined(run, capsys)
    assert (code, found["findings"]) == (0, [])
    expected = f"can be resumed from step {last_step(run)}, bit for bit (the run is finished"
    assert found["resumes"].startswith(expected)
    assert sorted((p, p.stat().st_mtime_ns) for p in run.rglob("*")) == before


def test_a_torn_checkpoint_is_named_and_the_one_before_is_offered(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = newest(run) / "tensors.safetensors"
    path.write_bytes(path.read_bytes()[:-9])
    code, found = examined(run, capsys)
    assert code == 1
    assert "tensors.safetensors: has" in found["findings"][0]["text"]
    assert "can be resumed from step " in found["resumes"]


def test_an_altered_log_is_a_fault(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = run / METRICS
    path.write_bytes(path.read_bytes().replace(b'"train/loss"', b'"train/lost"', 1))
    code, found = examined(run, capsys)
    assert code == 1
    assert "metrics.jsonl: was altered since ckpt-" in found["findings"][0]["text"]


def test_a_shorter_log_is_a_fault(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = run / METRICS
    path.write_bytes(path.read_bytes().split(b"\n")[0] + b"\n")
    assert examined(run, capsys)[0] == 1


def test_weights_that_are_not_finite_are_a_fault(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = checkpoint.load(newest(run))
    network = saved.state["container"]["agent"]["network"]
    name = next(name for name, x in network.items() if x.is_floating_point())
    network[name] = torch.full_like(network[name], torch.nan)
    checkpoint.save(run / "checkpoints", saved.step + 1, saved.state, broken=[name])
    code, found = examined(run, capsys)
    assert code == 1
    assert f"network.{name} hold NaN or infinity" in found["findings"][-1]["text"]
    assert f"from step {saved.step}," in found["resumes"]


def test_a_link_is_a_fault_and_nothing_else_is_read(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / "videos").symlink_to("/etc")
    code, found = examined(run, capsys)
    assert code == 1
    assert "videos: is a link" in found["findings"][0]["text"]


def test_it_reads_for_people_too(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    step = last_step(run)
    (run / "done.json").write_text("[")
    assert main(["doctor", str(run)]) == 1
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("fault: ")
    assert f"can be resumed from step {step}" in last
