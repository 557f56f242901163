"""The examples of callbacks and of deploying a policy run as they are."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import operant

ROOT = Path(operant.__file__).parents[1]


def example(name: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / name)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(folder)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_callbacks(tmp_path: Path) -> None:
    said = example("callbacks.py", tmp_path)
    (run,) = (tmp_path / "runs").iterdir()
    done = json.loads((run / "done.json").read_text())
    assert done["eval/mean_reward"] >= 150
    assert done["eval/other_reward"] > 0
    assert "StopAtReturn(threshold=150" in done["stopped_by"]
    assert "mine/weight_norm" in (run / "metrics.jsonl").read_text()
    assert "best weights" in said


def test_deploy(tmp_path: Path) -> None:
    said = example("deploy.py", tmp_path).splitlines()
    assert said[-2:] == ["observations (3, 3)", "actions (3, 1)"]
    assert float(said[-3].split()[1]) < 0
