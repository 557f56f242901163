"""Arguments, the order of runs, and what happens when a job fails; nothing is measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import rooted

from benchmarks import machine, speed, summary
from benchmarks.peers import PEERS
from benchmarks.works import LIMIT, NAMES, OURS, WORKS

JOBS = Path(speed.__file__).parent / "jobs"


def refused(*argv: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What is said about these arguments."""
    with pytest.raises(SystemExit) as error:
        speed.arguments(argv)
    assert error.value.code == 2
    return capsys.readouterr().err


def test_an_unknown_work_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "'ppo-ping'" in refused("ppo-ping", capsys=capsys)


def test_an_unknown_peer_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    said = refused("ppo-pong", "--peers", "sb4", capsys=capsys)
    assert "unknown peer 'sb4'" in said
    assert "sb3" in said


def test_a_peer_that_cannot_do_the_work_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "sb3 cannot do" in refused("prioritized-replay", "--peers", "sb3", capsys=capsys)


@pytest.mark.parametrize("flags", [("--repeats", "0"), ("--seconds", "0"), ("--seconds", "-1")])
def test_no_runs_or_no_time_is_refused(
    flags: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert "at least 1" in refused("ppo-pong", *flags, capsys=capsys)


def test_by_default_three_runs_of_twenty_seconds_beside_the_peer_of_the_aim() -> None:
    options = speed.arguments(["prioritized-replay"])
    assert (options.repeats, options.seconds, options.peers) == (3, 20.0, ["tianshou"])


def test_peers_are_taken_in_the_order_named() -> None:
    assert speed.arguments(["dqn-pong", "--peers", "tianshou, sb3"]).peers == ["tianshou", "sb3"]


def test_no_peers_can_be_asked_for() -> None:
    assert speed.arguments(["dqn-pong", "--peers", ""]).peers == []


def test_a_quick_look_runs_once_and_briefly() -> None:
    options = speed.arguments(["dqn-pong", "--quick"])
    assert (options.repeats, options.seconds, options.warm) == (1, 5.0, 1.0)


def test_what_is_asked_for_overrules_a_quick_look() -> None:
    options = speed.arguments(["dqn-pong", "--quick", "--repeats", "2", "--seconds", "3"])
    assert (options.repeats, options.seconds) == (2, 3.0)


def test_a_disturbed_run_says_by_how_much() -> None:
    assert "others used 45% of the cores" in speed.disturbance({"others": 0.45})
    assert speed.disturbance({"others": 0.05}) == ""


def test_every_job_that_is_named_is_there() -> None:
    named = {module for work in WORKS.values() for module in work.jobs.values()}
    assert {name for name in named if not (JOBS / f"{name}.py").is_file()} == set()


def test_every_contender_can_be_run_and_named() -> None:
    contenders = {name for work in WORKS.values() for name in work.jobs}
    assert contenders == {OURS, LIMIT, *PEERS} - {"zoo"}  # whose settings are for scores
    assert contenders <= set(NAMES)


def test_make_bench_runs_every_work() -> None:
    text = (rooted.ROOT / "Makefile").read_text("utf-8").replace("\\\n", " ")
    line = next(line for line in text.splitlines() if line.startswith("WORKS :="))
    assert line.split()[2:] == list(WORKS)


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A machine that need not be waited for; what others use in the runs to come."""
    shares: list[float] = []
    monkeypatch.setattr(machine, "wait_until_quiet", lambda patience: None)
    monkeypatch.setattr(
        machine,
        "Others",
        lambda: SimpleNamespace(share=lambda: shares.pop(0) if shares else 0.0),
    )
    return shares


def test_contenders_run_in_turn(
    quiet: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []

    def run(options: Any, name: str, python: Path) -> summary.Run:
        order.append(name)
        return {"value": 2.0}

    monkeypatch.setattr(speed, "run", run)
    monkeypatch.setattr(speed, "python_of", Path)
    monkeypatch.setattr(summary, "HOME", tmp_path)
    speed.main(["ppo-cartpole", "--repeats", "2"])
    assert order == ["operant", "sb3", "limit"] * 2


def test_the_last_line_is_the_closing_line(
    quiet: list[float],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(speed, "run", lambda options, name, python: {"value": 3.0})
    monkeypatch.setattr(summary, "HOME", tmp_path)
    speed.main(["sac-halfcheetah", "--peers", "", "--repeats", "1"])
    closing = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert list(closing) == ["work", "sps", "best_peer", "ratio", "limit_fraction"]
    assert closing["limit_fraction"] == 1.0
    assert (tmp_path / "sac-halfcheetah.png").stat().st_size > 1000


def test_a_disturbed_run_is_repeated_and_the_quietest_counts(
    quiet: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    quiet += [0.5, 0.2, 0.3]
    values = iter([1.0, 2.0, 3.0])
    monkeypatch.setattr(speed, "run", lambda *_: {"value": next(values)})
    found = speed.measure(speed.arguments(["startup"]), "operant", Path())
    assert found == {"value": 2.0, "others": 0.2}


def test_a_quiet_run_is_not_repeated(quiet: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    quiet += [0.05, 0.0]
    monkeypatch.setattr(speed, "run", lambda *_: {"value": 1.0})
    assert speed.measure(speed.arguments(["startup"]), "operant", Path())["others"] == 0.05


def answered(monkeypatch: pytest.MonkeyPatch, code: int, out: str) -> None:
    """Let every job end like this."""
    done = subprocess.CompletedProcess([], code, stdout=out, stderr="Traceback: no torch")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)


def test_a_job_tells_its_result_in_its_last_object(monkeypatch: pytest.MonkeyPatch) -> None:
    answered(monkeypatch, 0, 'hello\n{"value": 1}\n{"value": 2}\nbye\n')
    assert speed.run(speed.arguments(["startup"]), "operant", Path()) == {"value": 2}


@pytest.mark.parametrize(("code", "out"), [(1, '{"value": 1}'), (0, "nothing")])
def test_a_job_that_fails_is_named_with_what_it_said(
    code: int, out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered(monkeypatch, code, out)
    with pytest.raises(SystemExit, match=r"sb3: benchmarks.jobs.sb3_train failed:\n.*no torch"):
        speed.run(speed.arguments(["ppo-pong"]), "sb3", Path(sys.executable))
