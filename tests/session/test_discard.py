"""Nothing that was ever trained is deleted, and a run that is gone is not made anew."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from operant.core.errors import CheckpointError
from operant.session.compose import compose
from operant.session.runner import Runner
from operant.session.session import Session

TINY: dict[str, Any] = {
    "steps": 64,
    "threads": 1,
    "log_every": 32,
    "agent": {"length": 8},
    "env": {"num_envs": 4},
    "network": {"hidden": [8]},
    "eval": {"episodes": 1},
}


def created(root: Path) -> Session:
    return Session.create(compose("a2c", TINY)[0], root, [])


def trained(session: Session) -> None:
    with session:
        runner = Runner(session)
        try:
            runner.train()
        finally:
            runner.close()


def test_a_run_without_a_step_is_discarded(tmp_path: Path) -> None:
    session = created(tmp_path)
    session.discard()
    assert not session.run.exists()


def test_a_trained_run_stays_even_if_its_log_is_gone(tmp_path: Path) -> None:
    session = created(tmp_path)
    trained(session)
    (session.run / "metrics.jsonl").unlink()
    session.discard()
    assert list(session.checkpoints.iterdir())


def test_a_run_that_was_opened_is_never_discarded(tmp_path: Path) -> None:
    run = created(tmp_path).run
    Session.open(run).discard()
    assert run.exists()


def test_paths_do_not_depend_on_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    session = created(Path("runs"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    trained(session)
    assert not list((tmp_path / "elsewhere").iterdir())
    assert (session.run / "done.json").exists()


def test_a_run_that_is_gone_is_an_error_and_not_made_anew(tmp_path: Path) -> None:
    session = created(tmp_path)
    shutil.move(session.run, tmp_path / "moved")
    with pytest.raises(CheckpointError, match="could not be saved: No such file or directory"):
        session.save(8, dict, last=True)
    assert not session.run.exists()


def test_a_run_goes_on_from_its_last_finite_weights(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session = created(tmp_path)
    trained(session)
    saved = session.load()
    assert saved is not None
    network = saved.state["container"]["agent"]["network"]
    name = next(name for name, x in network.items() if x.is_floating_point())
    network[name].fill_(float("nan"))
    session.save(saved.step + 1, lambda: saved.state)
    found = session.load()
    assert found is not None
    assert found.step == saved.step
    assert f"network.{name} hold NaN or infinity" in capsys.readouterr().err
