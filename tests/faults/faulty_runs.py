"""Small runs of the command line in which an environment goes wrong."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fault_env import events
from running import Result, at_call, call, only_run
from scenarios import BY_NUMBER

from operant.core.seeds import seed_for

SAMPLERS = {
    "subproc": "--sampler serial --env.manager subproc",
    "parallel": "--sampler parallel --env.manager simple",
    "alternating": "--sampler alternating --env.manager subproc",
    "async": "--sampler async --env.manager simple",
    "serial": "--sampler serial --env.manager simple",
}
SMALL = (
    "train a2c --env.id fault_env:FaultEnv --recipe none --seed 3 --threads 1 --quiet --steps 800 "
    "--log-every 100 --network.hidden 4 --agent.length 10 --env.num-envs 4 --env.workers 2 "
    "--eval.every none --checkpoint.seconds 0.001 --checkpoint.share 100"
)
LATE = 60  # steps that an environment takes first, so that the trials before a run go well
NOTICED = "operant.processes.process:WorkerProcess.exit_report"  # what a lost worker is asked


def train(runs: Path, sampler: str = "parallel", more: str = "", **fault: Any) -> Result:
    """Train with a fault in environment 2, which happens in worker processes only."""
    given = {"at": LATE, "index": 2, "base": seed_for(3, "env"), "record": runs / "record"}
    given |= {"workers": sampler != "serial"}
    words = [f"{name}={json.dumps(value, default=str)}" for name, value in (given | fault).items()]
    line = f"{SMALL} {SAMPLERS[sampler]} {more}".split()
    runs.mkdir(exist_ok=True)
    return call([*line, "--env.kwargs", *words], runs / "runs")


def finished(runs: Path) -> dict[str, Any]:
    """What a run says of itself at its end."""
    found: dict[str, Any] = json.loads((only_run(runs / "runs") / "done.json").read_text())
    return found


class Watch:
    """Tells when a fault was noticed, and records how long that took."""

    def __init__(self, patch: pytest.MonkeyPatch, record: Callable[[str, object], None]) -> None:
        self.patch, self.record = patch, record
        self.moments: list[float] = []

    def notice(self, where: str = NOTICED, nth: int = 1) -> None:
        """Take the time at the `nth` call of a function."""
        at_call(where, nth, lambda: self.moments.append(time.monotonic()), self.patch.setattr)

    def check(self, number: int, since: float | Path, until: float | None = None) -> None:
        """Hold the time to notice against that of the scenario; a file tells when it happened."""
        begin = events(since)[0].moment if isinstance(since, Path) else since
        seconds = (self.moments[0] if until is None else until) - begin
        limit = BY_NUMBER[number].within
        self.record("seconds", f"{seconds:.3f}")
        assert limit is not None
        assert 0 <= seconds < limit
