"""Callbacks: called at their moments, saved by name, and able to end a run."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from running import at_call, call, only_run, trace

import operant
from operant.callbacks import BestCheckpoint, Event, StopAtReturn
from operant.core.errors import CheckpointError, UsageError
from operant.session.callback_names import name_of_callback, parse_call, split_names
from operant.session.callbacks import CallbackFault
from operant.session.checkpoint.checkpoint import newest
from operant.session.session import read_config

SMALL: dict[str, Any] = {
    "steps": 96,
    "log_every": 32,
    "quiet": True,
    "threads": 1,
    "recipe": "none",
    "sampler": "serial",
    "env": {"num_envs": 2, "manager": "simple"},
    "eval": {"every": 64, "episodes": 1},
    "agent": {"length": 8, "minibatch": 8, "epochs": 1},
    "network": {"hidden": [8]},
}
LINE = (
    "train ppo --env.id CartPole-v1 --steps 96 --log-every 32 --quiet --threads 1 --recipe none "
    "--sampler serial --env.num-envs 2 --env.manager simple --eval.every 64 --eval.episodes 1 "
    "--agent.length 8 --agent.minibatch 8 --agent.epochs 1 --network.hidden 8"
)


def train(runs: Path, *callbacks: Any, **settings: Any) -> operant.Run:
    settings = {**SMALL, **settings}
    return operant.train("ppo", "CartPole-v1", runs=runs, callbacks=list(callbacks), **settings)


def lines(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


@dataclass
class Diary:
    """Writes down what it is told."""

    seen: list[tuple[str, int]] = field(default_factory=list, init=False)

    def __getattr__(self, name: str) -> Callable[[Event], None]:
        if not name.startswith("on_"):
            raise AttributeError(name)
        return lambda event: self.seen.append((name, event.step))


@dataclass
class Counting:
    """Counts its calls, also over interruptions."""

    count: int = field(default=0, init=False)

    def on_log(self, event: Event) -> None:
        self.count += 1
        event.metrics["mine/count"] = self.count

    def state_dict(self) -> dict[str, Any]:
        return {"count": self.count}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.count = state["count"]


def doubled(event: Event) -> None:
    event.metrics["mine/double"] = 2 * event.step


def broken(event: Event) -> None:
    if event.step >= 64:
        raise ValueError("no such thing")


def test_every_moment_is_told_in_order(tmp_path: Path) -> None:
    diary = Diary()
    train(tmp_path, diary, checkpoint={"seconds": 1e3})
    assert diary.seen == [
        *(("on_start", 0), ("on_checkpoint", 0), ("on_log", 32)),
        *(("on_evaluation", 64), ("on_log", 64), ("on_evaluation", 96), ("on_log", 96)),
        *(("on_checkpoint", 96), ("on_stop", 96)),
    ]


def test_a_plain_function_adds_metrics_of_its_own(tmp_path: Path) -> None:
    run = train(tmp_path, doubled)
    assert [line["mine/double"] for line in lines(run.path)] == [64, 128, 192]
    assert read_config(run.path / "config.yaml").callbacks == ("test_callbacks:doubled",)


def test_callbacks_change_nothing_that_is_learned(tmp_path: Path) -> None:
    runs = [train(tmp_path / str(n), *[Diary(), StopAtReturn(1e9)][:n]) for n in (0, 2)]
    first, second = ((run.path / "metrics.jsonl").read_bytes() for run in runs)
    assert first == second


@pytest.mark.parametrize("moment", ["on_start", "on_log", "on_evaluation", "on_checkpoint"])
def test_stop_ends_the_run_well_with_an_evaluation(moment: str, tmp_path: Path) -> None:
    class Stopper:
        pass

    setattr(Stopper, moment, lambda self, event: "stop" if event.step >= 0 else None)
    run = train(tmp_path, Stopper())
    done = json.loads((run.path / "done.json").read_text())
    expected = {"on_start": 0, "on_log": 32, "on_evaluation": 64, "on_checkpoint": 0}[moment]
    assert (done["step"], done["stopped_by"].rstrip("123")) == (expected, "here:Stopper")
    assert newest(run.path / "checkpoints").step == expected
    assert ("eval/mean_reward" in done) == (expected > 0)
    assert len(lines(run.path)) == expected // 32


def test_a_run_that_a_callback_ended_can_be_made_longer(tmp_path: Path) -> None:
    run = train(tmp_path, StopAtReturn(0.0, by="rollout"), steps=320)
    first = json.loads((run.path / "done.json").read_text())["step"]
    assert first < 320
    more = ["resume", str(run.path), "--quiet", "--steps", "640", "--without-callbacks"]
    assert call(more).code == 0
    assert json.loads((run.path / "done.json").read_text())["step"] == 640


def test_a_return_that_is_reached_stops_by_evaluation(tmp_path: Path) -> None:
    run = train(tmp_path, StopAtReturn(1.0))
    done = json.loads((run.path / "done.json").read_text())
    name = "operant.callbacks.stop_at_return:StopAtReturn(threshold=1.0, by='evaluation')"
    assert (done["step"], done["stopped_by"]) == (64, name)
    with pytest.raises(UsageError, match=r"eval\.every = none switches evaluation off"):
        train(tmp_path / "never", StopAtReturn(1.0), eval={"every": None})
    assert not list((tmp_path / "never").iterdir())


def test_one_that_raises_saves_the_run_and_is_named(tmp_path: Path) -> None:
    with pytest.raises(CallbackFault, match=r"callback test_callbacks:broken raised in on_log at"):
        train(tmp_path, broken)
    run = only_run(tmp_path)
    assert newest(run / "checkpoints").step == 64
    assert "ValueError: no such thing" in (run / "error.txt").read_text()
    assert call(["resume", str(run), "--quiet", "--without-callbacks"]).code == 0
    whole = train(tmp_path / "whole")
    assert (run / "metrics.jsonl").read_bytes() == (whole.path / "metrics.jsonl").read_bytes()


def test_state_and_names_come_back_when_a_run_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = f"{LINE} --callback test_callbacks:Counting --callback=test_callbacks:doubled"
    with monkeypatch.context() as patch:
        stop = partial(os.kill, os.getpid(), signal.SIGINT)
        at_call("operant.samplers.explorer:Explorer.update", 4, stop, patch.setattr)
        assert call(line, tmp_path / "cut").code == 130
    run = only_run(tmp_path / "cut")
    assert call(["resume", str(run), "--quiet"]).code == 0
    assert call(line, tmp_path / "whole").code == 0
    assert [x["mine/count"] for x in lines(run)] == [1, 2, 3]
    assert trace(run) == trace(only_run(tmp_path / "whole"))


def test_figures_of_ones_own_evaluation_are_logged(tmp_path: Path) -> None:
    class Elsewhere:
        def on_evaluation(self, event: Event) -> None:
            found = event.evaluate(episodes=2, env={"kwargs": {"sutton_barto_reward": True}})
            event.metrics["eval/mean_reward"] = -7.0
            event.metrics["eval/other"] = found["eval/mean_reward"]

    run = train(tmp_path, Elsewhere())
    last = lines(run.path)[-1]
    assert (last["eval/mean_reward"], last["eval/other"]) == (-7.0, -1.0)
    assert json.loads((run.path / "done.json").read_text())["eval/other"] == -1.0


def test_a_lambda_is_known_only_here_and_can_be_left_out(tmp_path: Path) -> None:
    run = train(tmp_path, lambda event: "stop" if event.step >= 32 else None)
    (run.path / "done.json").unlink()
    program = "import sys; from operant.cli.main import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", program, "resume", str(run.path), "--quiet"]
    refused = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert refused.returncode == 2
    assert "was passed as an object that only that program had" in refused.stderr
    assert "--without-callbacks" in refused.stderr
    again = subprocess.run([*command, "--without-callbacks"], check=False, timeout=100)
    assert (again.returncode, lines(run.path)[-1]["step"]) == (0, 96)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.b:C", ("a.b:C", [], {})),
        ("a:C(475)", ("a:C", [475], {})),
        ("a:C(-1.5, by='x, y', of=[1, 2])", ("a:C", [-1.5], {"by": "x, y", "of": [1, 2]})),
    ],
)
def test_arguments_are_literals(text: str, expected: Any) -> None:
    assert parse_call(text) == expected


@pytest.mark.parametrize(
    "text",
    ["a:C(__import__('os'))", "a:C(1)(2)", "a:C(**{})", "a:C(1", "a:C(x)", "C(1)", "a:C(1) or 2"],
)
def test_nothing_else_is_evaluated(text: str) -> None:
    with pytest.raises(UsageError, match="callbacks = "):
        parse_call(text)


def test_commas_between_brackets_separate_arguments() -> None:
    assert split_names(["a:B(1", "c='x,)'),d:e", "f:g"]) == ("a:B(1,c='x,)')", "d:e", "f:g")


def test_a_dataclass_is_named_by_its_fields() -> None:
    name = name_of_callback(BestCheckpoint("eval/other"))
    assert name == "operant.session.best:BestCheckpoint(metric='eval/other')"
    assert name_of_callback(Diary()) == "test_callbacks:Diary()"


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("operant.callbacks:StopAtReturn", "cannot be made: .*'threshold'"),
        ("operant.callbacks:Nothing", "has no 'Nothing'"),
        ("no_such_module:f", "module 'no_such_module' cannot be imported"),
        ("operant:__version__", "is a str; expected a function, or an object with a method"),
    ],
)
def test_what_is_no_callback_is_refused(flag: str, message: str, tmp_path: Path) -> None:
    result = call([*LINE.split(), "--callback", flag], tmp_path)
    assert result.code == 2
    assert re.search(message, result.err)
    assert not list(tmp_path.iterdir())


@dataclass
class Scores:
    """Replaces the figures of evaluations, one after the other."""

    values: tuple[float, ...]
    calls: int = field(default=0, init=False)
    saved: dict[int, Any] = field(default_factory=dict, init=False)

    def on_evaluation(self, event: Event) -> None:
        event.metrics["eval/mean_reward"] = self.values[self.calls]
        self.calls += 1
        state = event.agent.network.state_dict()
        self.saved[event.step] = {name: x.clone() for name, x in state.items()}


def test_the_best_weights_are_kept_and_used(tmp_path: Path) -> None:
    scores = Scores((1.0, 5.0, 5.0, 2.0, 3.0))
    run = train(tmp_path, scores, steps=160, eval={"every": 32, "episodes": 1})
    assert [path.name for path in (run.path / "best").iterdir()] == ["ckpt-000000000064"]
    best = operant.load(run.path, best=True).agent.network.state_dict()
    assert all(x.equal(scores.saved[64][name]) for name, x in best.items())
    last = operant.load(run.path).agent.network.state_dict()
    assert not all(x.equal(best[name]) for name, x in last.items())
    found = [
        call(["eval", str(run.path), "--episodes", "3", "--json", *flag]).out
        for flag in ([], ["--best"])
    ]
    means = [json.loads(text)["eval/mean_reward"] for text in found]
    assert means[1] == operant.load(run.path, best=True).eval(3)["eval/mean_reward"]


@pytest.mark.parametrize("settings", [{"eval": {"every": None}}, {"checkpoint": {"best": False}}])
def test_without_best_weights_the_error_says_why(settings: dict[str, Any], tmp_path: Path) -> None:
    run = train(tmp_path, **settings)
    with pytest.raises(CheckpointError, match="holds no weights: the run was not evaluated yet"):
        operant.load(run.path, best=True)


def test_the_best_of_a_replay_agent_holds_no_replay_buffer(tmp_path: Path) -> None:
    settings = {**SMALL, "agent": {"learning_starts": 16, "batch_size": 8}}
    run = operant.train("dqn", "CartPole-v1", runs=tmp_path, **settings)
    assert set(newest(run.path / "best").state) == {"network", "actor"}
    assert operant.load(run.path, best=True).eval(1)["eval/mean_reward"] > 0
