"""Runs of the command line: called here, or in processes that a test may kill."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import io
import itertools
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from operant.cli.main import main
from operant.core import tree
from operant.session.checkpoint import checkpoint

COMMON = (
    "--recipe none --seed 3 --threads 1 --quiet --network.hidden 8 --log-every 64 "
    "--eval.every 128 --eval.episodes 1 --checkpoint.seconds 0.2 --checkpoint.share 100"
)
OFTEN = f"{COMMON} --checkpoint.seconds 0.001"  # with every line of the log
PPO = "train ppo --env.num-envs 2 --agent.length 16 --agent.minibatch 16 --agent.epochs 2"
REPLAY = "--agent.learning-starts 60 --agent.batch-size 8"
DQN = f"train dqn --env.num-envs 2 --agent.replay-size 200 {REPLAY} --steps 400"
PENDULUM = (
    f"train {{}} --env.id Pendulum-v1 --env.num-envs 1 --agent.replay-size 150 {REPLAY} --steps 160"
)
AGENTS = {
    "a2c": "train a2c --env.num-envs 2 --steps 400",
    "ppo": f"{PPO} --steps 400",
    "trpo": "train trpo --env.num-envs 2 --agent.length 16 --agent.minibatch 16 --agent.epochs 2 "
    "--steps 300",
    "vtrace": "train vtrace --env.num-envs 2 --steps 400",
    "acer": f"train acer --env.num-envs 2 --agent.replay-size 200 {REPLAY} --steps 400",
    "dqn": DQN,
    "rainbow": DQN.replace("dqn", "rainbow"),
    "ddpg": f"{PENDULUM.format('ddpg')} --agent.exploration ornstein-uhlenbeck",
    "maddpg": f"train maddpg --env.id mpe2:simple_spread_v3 --env.num-envs 1 {REPLAY} --steps 160",
    "ppo of several": f"{PPO} --env.id mpe2:simple_spread_v3 --agents separate --steps 300",
    "dqn of several": f"{DQN} --env.id mpe2:simple_spread_v3 --agents shared --agent-id",
    "td3": PENDULUM.format("td3"),
    "sac": PENDULUM.format("sac"),
    "ppo compiled": f"{PPO} --compile on --network.separate --steps 300",
    "ppo with memory": f"{PPO} --network.lstm 4 --steps 300",
    "ppo over processes": f"{PPO} --env.manager subproc --env.workers 2 --steps 300",
    "ppo in parallel": f"{PPO} --sampler parallel --env.workers 2 --network.lstm 4 --steps 300",
    "dqn in parallel": f"{DQN} --sampler parallel --env.workers 2 --decorrelate 9",
    "ppo alternating": f"{PPO} --sampler alternating --no-mid-batch-reset --steps 300",
    "ppo async": f"{PPO} --sampler async --steps 300",
    "dqn async": f"{DQN} --sampler async --env.manager simple",
}


class Result(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


def call(line: str | list[str], runs: Path | None = None) -> Result:
    """Run a command in this process."""
    words = line.split() if isinstance(line, str) else line
    where = ["--runs", str(runs)] if runs else []
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([*words, *where])
    return Result(code, out.getvalue(), err.getvalue())


def train(line: str, runs: Path, code: int = 0) -> Path:
    """Train in this process; the directory of the run."""
    result = call(f"{line} {COMMON}", runs)
    assert result.code == code, result.err
    return only_run(runs)


def only_run(runs: Path) -> Path:
    (run,) = runs.iterdir()
    return run


def trace(run: Path) -> tuple[bytes, str]:
    """The metric log, and a hash of everything that training would go on from."""
    state = checkpoint.newest(run / "checkpoints").state
    state.pop("log")  # how long the files are that the clock writes
    hasher = hashlib.sha256()
    for path, leaf in tree.leaves(state):
        value = leaf if isinstance(leaf, str | int | float | bool) else np.asarray(leaf).tobytes()
        hasher.update(repr((path, value)).encode())
    return (run / "metrics.jsonl").read_bytes(), hasher.hexdigest()


def at_call(
    where: str, nth: int, do: Callable[[], object], put: Callable[[Any, str, Any], None] = setattr
) -> None:
    """Do something just before the `nth` call of `module:name` or `module:Class.name`.

    `put` sets the attribute: that of a MonkeyPatch takes it back after the test.
    """
    module, _, path = where.partition(":")
    *owners, name = path.split(".")
    owner: Any = importlib.import_module(module)
    for part in owners:
        owner = getattr(owner, part)
    original, calls = getattr(owner, name), itertools.count(1)

    def watched(*args: Any, **kwargs: Any) -> Any:
        if next(calls) == nth:
            do()
        return original(*args, **kwargs)

    put(owner, name, watched)


class ForkServer:
    """Forks processes for the command line from one that has imported everything already."""

    def __enter__(self) -> Self:
        script = Path(__file__).with_name("fork_server.py")
        self.process = subprocess.Popen(
            [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(10)

    def start(self, line: str, kill_at: tuple[str, int] | None = None) -> int:
        """Run a command, which kills itself at a call if asked to; its process."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([line.split(), kill_at]) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def wait(self) -> int:
        """The exit code, or minus the signal that ended it."""
        return self._answer()

    def _answer(self) -> int:
        assert self.process.stdout is not None
        return int(self.process.stdout.readline())
