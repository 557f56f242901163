from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from running import AGENTS, COMMON, at_call, call, only_run, trace, train

from operant.session.checkpoint.checkpoint import listing, newest
from operant.session.compose import compose
from operant.session.run_directory import lock
from operant.session.session import Session

CHUNK = "operant.samplers.explorer:Explorer.update"
A2C = AGENTS["a2c"]
# Of a run, in chunks; 5 for the others. The next line of the log is one without an evaluation.
MIDDLE = {
    "a2c": 15,
    "dqn": 20,
    "ddpg": 100,
    "td3": 100,
    "maddpg": 100,
    "dqn of several": 20,
    "sac": 100,
    "dqn in parallel": 20,
    "dqn async": 20,
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, str]:
    """The trace of A2C when nothing stops it."""
    return trace(train(A2C, tmp_path_factory.mktemp("whole")))


def stop_at(monkeypatch: pytest.MonkeyPatch, nth: int, number: int, times: int = 1) -> None:
    def send() -> None:
        for _ in range(times):
            os.kill(os.getpid(), number)

    at_call(CHUNK, nth, send, monkeypatch.setattr)


def resume(run: Path, code: int = 0) -> str:
    result = call(["resume", str(run), "--quiet"])
    assert result.code == code, result.err
    return result.out + result.err


def stopped_run(
    monkeypatch: pytest.MonkeyPatch, runs: Path, name: str = "a2c", number: int = signal.SIGINT
) -> Path:
    """A run that was stopped after about half its steps."""
    with monkeypatch.context() as patch:
        stop_at(patch, MIDDLE.get(name, 5), number)
        return train(AGENTS[name], runs, code=128 + number)


@pytest.mark.every(3)
@pytest.mark.parametrize("name", AGENTS)
def test_a_run_stopped_and_resumed_is_as_if_never_stopped(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = trace(train(AGENTS[name], tmp_path / "whole"))
    for number in (signal.SIGINT, signal.SIGTERM):
        run = stopped_run(monkeypatch, tmp_path / f"cut{number}", name, number)
        assert len((run / "metrics.jsonl").read_bytes()) < len(whole[0])
        resume(run)
        assert trace(run) == whole


def test_sigterm_saves_and_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_at(monkeypatch, 7, signal.SIGTERM)
    result = call(f"{A2C} {COMMON}", tmp_path)
    run = only_run(tmp_path)
    assert result.code == 143
    step = newest(run / "checkpoints").step
    assert 60 < step <= 70
    assert result.out == f"stopped at step {step}; continue with: operant resume {run}\n"


def test_a_second_ctrl_c_leaves_at_once_and_loses_no_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: tuple[bytes, str]
) -> None:
    with monkeypatch.context() as patch:
        stop_at(patch, 25, signal.SIGINT, times=2)
        result = call(f"{A2C} {COMMON}", tmp_path)
    assert (result.code, result.err.count("\n")) == (130, 1)
    assert "interrupted; the last checkpoint is complete" in result.err
    resume(only_run(tmp_path))
    assert trace(only_run(tmp_path)) == whole


def test_resume_without_a_name_takes_the_newest_unfinished_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = stopped_run(monkeypatch, tmp_path)
    with monkeypatch.context() as patch:
        stop_at(patch, 3, signal.SIGINT)
        call(f"{A2C} {COMMON} --name newer", tmp_path)
    call(f"{A2C} {COMMON} --name finished --steps 10", tmp_path)
    for name in ("newer", older.name[:9]):
        assert call("resume --quiet", tmp_path).code == 0
        (run,) = tmp_path.glob(f"{name}*")
        assert json.loads((run / "done.json").read_text())["step"] >= 400
    result = call("resume", tmp_path)
    assert (result.code, "holds no unfinished run" in result.err) == (2, True)


def test_resuming_a_finished_run_says_so_and_changes_nothing(tmp_path: Path) -> None:
    run = train("train a2c --steps 40", tmp_path)
    before = trace(run)
    assert resume(run) == f"{run} is finished; there is nothing to resume\n"
    assert trace(run) == before


def test_a_run_in_use_is_not_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = stopped_run(monkeypatch, tmp_path)
    before = trace(run)
    with lock(run):
        assert f"{run}: is in use by process {os.getpid()}; wait" in resume(run, code=2)
    assert trace(run) == before


def test_a_torn_checkpoint_is_refused_by_name_and_the_one_before_it_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: tuple[bytes, str]
) -> None:
    run = stopped_run(monkeypatch, tmp_path)
    torn = listing(run / "checkpoints")[-1] / "tensors.safetensors"
    torn.write_bytes(torn.read_bytes()[:-1])
    said = resume(run)
    assert f"operant: warning: checkpoint refused: {torn}: has" in said
    assert trace(run) == whole


def test_with_every_checkpoint_torn_nothing_begins_again_in_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stopped_run(monkeypatch, tmp_path)
    log = (run / "metrics.jsonl").read_bytes()
    for path in listing(run / "checkpoints"):
        (path / "MANIFEST.json").write_text("{}")
    assert "none of its checkpoints is complete (ckpt-" in resume(run, code=1)
    assert (run / "metrics.jsonl").read_bytes() == log


def test_checkpoints_that_are_gone_are_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stopped_run(monkeypatch, tmp_path)
    (run / "checkpoints").rename(tmp_path / "elsewhere")
    assert "holds no checkpoint, but metrics.jsonl has lines; remove" in resume(run, code=1)


def test_a_run_that_never_came_to_a_checkpoint_begins_at_step_zero(
    tmp_path: Path, whole: tuple[bytes, str]
) -> None:
    words = [*A2C.split()[2:], *COMMON.replace("--recipe none", "").replace("--quiet", "").split()]
    config, _ = compose("a2c", {}, words, recipe="none")
    run = Session.create(config, tmp_path, []).run
    resume(run)
    assert trace(run) == whole


def test_a_configuration_changed_since_is_named_as_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stopped_run(monkeypatch, tmp_path)
    config = run / "config.yaml"
    config.write_text(config.read_text().replace("hidden:\n  - 8\n", "hidden:\n  - 9\n"))
    result = call(["resume", str(run), "--quiet", "--force"])  # else refused by its settings
    said = result.err
    assert (result.code, "does not fit its run (" in said) == (1, True)
    assert said.endswith("was config.yaml changed since?\n")


def test_what_cannot_be_saved_exactly_says_so_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ale_py")
    line = "train ppo --env.id ALE/Pong-v5 --env.num-envs 1 --env.time-limit 8 --agent.length 4"
    small = "--network.image small --network.image-size 8 --agent.minibatch 4 --agent.epochs 1"
    with monkeypatch.context() as patch:
        stop_at(patch, 3, signal.SIGINT)
        run = train(f"{line} {small} --steps 24", tmp_path, code=130)
    manifest = newest(run / "checkpoints").manifest
    assert manifest["exact"] is False
    assert manifest["reasons"] == [
        "the environments cannot be saved; their episodes start anew",
        "the vector environments of ale_py give no access to their state",
    ]
    said = resume(run)
    assert "operant: warning: these environments cannot be restored" in said
    assert json.loads((run / "done.json").read_text())["step"] >= 24


def test_an_environment_that_keeps_text_in_its_state_is_saved(tmp_path: Path) -> None:
    assert call(f"train ppo --env.id Blackjack-v1 {COMMON} --steps 40", tmp_path).code == 0
