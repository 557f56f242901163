"""Workers that were lost are counted in the log, in the summary, and over resuming."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import operant

LATE = 70  # steps: after the trial of exact resume, which may be in this process


@pytest.mark.filterwarnings("ignore:worker of")
@pytest.mark.parametrize("sampler", ["parallel", "async", "alternating"])
def test_restarts_are_in_the_log_and_in_the_summary(sampler: str, tmp_path: Path) -> None:
    fault = {"mode": "kill", "at": LATE, "times": 1, "record": str(tmp_path / "died")}
    manager = "subproc" if sampler == "alternating" else "simple"
    env = {"num_envs": 4, "workers": 2, "manager": manager, "kwargs": fault}
    settings: dict[str, Any] = {"sampler": sampler, "steps": 800, "log_every": 40, "env": env}
    settings |= {"network": {"hidden": [4]}, "eval": {"every": None}, "agent": {"length": 10}}
    run = operant.train("a2c", "fragile:Fragile", runs=tmp_path, quiet=True, **settings).path
    done = json.loads((run / "done.json").read_text())
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    counted = [line.get("rollout/worker_restarts", 0) for line in lines]
    assert counted[0] == 0
    assert counted[-1] == done["worker_restarts"]
    assert done["worker_restarts"] in (1, 2)  # both workers may get there at the same moment
