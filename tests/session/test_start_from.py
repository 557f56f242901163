"""Training that starts from the weights of another run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from running import AGENTS, COMMON, call, only_run, trace, train

import operant
from operant.core import tree
from operant.core.errors import UsageError
from operant.session.checkpoint import checkpoint

NORMAL = "--network.normalize"
NAMES = ("a2c", "ppo", "trpo", "vtrace", "dqn", "td3", "sac")
LINES = {name: f"{AGENTS[name]} {NORMAL}" for name in NAMES}


def agent_state(run: Path, oldest: bool = False) -> dict[str, Any]:
    """What the newest, or the oldest, checkpoint holds of the agent."""
    directory = run / "checkpoints"
    if oldest:
        for path in checkpoint.listing(directory)[1:]:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    state: dict[str, Any] = checkpoint.newest(directory).state["container"]["agent"]
    return state


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: train(line, tmp_path_factory.mktemp(name)) for name, line in LINES.items()}


@pytest.mark.parametrize("name", LINES)
def test_networks_targets_and_statistics_are_taken_over(
    name: str, runs: dict[str, Path], tmp_path: Path
) -> None:
    line = f"{LINES[name]} {COMMON} --seed 8 --agent.lr 1e-5 --steps 8 --from {runs[name]}"
    result = call(f"{line} --checkpoint.keep 99", tmp_path)
    assert result.code == 0, result.err
    run = only_run(tmp_path)
    old, new = agent_state(runs[name]), agent_state(run, oldest=True)
    weights = {"network", "critics", "target", "log_alpha"} & old.keys()
    for part in weights:
        for (path, x), (_, y) in zip(tree.leaves(old[part]), tree.leaves(new[part]), strict=True):
            assert torch.equal(torch.as_tensor(x), torch.as_tensor(y)), (part, path)
    assert (new["updates"], old["updates"] > 0) == (0, True)
    about = json.loads((run / "run.json").read_text())
    assert about["from"] == {"run": str(runs[name]), "step": about["from"]["step"]}


def test_the_new_run_goes_on_without_the_old_one(runs: dict[str, Path], tmp_path: Path) -> None:
    old = tmp_path / "old"
    shutil.copytree(runs["a2c"], old)
    line = f"{LINES['a2c']} --from {old}"
    whole = train(f"{line} --steps 256", tmp_path / "whole")
    run = train(f"{line} --steps 128", tmp_path / "parts")
    shutil.rmtree(old)
    assert call(["resume", str(run), "--steps", "256", "--quiet"]).code == 0
    assert trace(run) == trace(whole)


def test_a_run_that_lost_its_start_is_not_begun_anew(runs: dict[str, Path], tmp_path: Path) -> None:
    run = train(f"{LINES['a2c']} --steps 64 --from {runs['a2c']}", tmp_path)
    shutil.rmtree(run / "checkpoints")
    for name in ("metrics.jsonl", "done.json"):
        (run / name).unlink()
    result = call(["resume", str(run)])
    assert result.code == 1
    assert "was to start from the weights of" in result.err


def test_weights_of_another_agent_are_refused(runs: dict[str, Path], tmp_path: Path) -> None:
    result = call(f"{LINES['ppo']} {COMMON} --from {runs['a2c']}", tmp_path)
    assert result.code == 2
    assert "is of agent a2c, and its weights mean something else to ppo" in result.err
    assert not list(tmp_path.iterdir())


def test_networks_that_do_not_fit_are_refused_by_their_tensors(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    result = call(f"{LINES['a2c']} {COMMON} --network.hidden 9 --from {runs['a2c']}", tmp_path)
    assert result.code == 2
    assert "is (8, 4) there and (9, 4) here" in result.err
    plain = f"{AGENTS['a2c']} {COMMON} --from {runs['a2c']}"
    assert "is only there" in call(plain, tmp_path).err
    other = f"{LINES['a2c']} {COMMON} --env.id Acrobot-v1 --from {runs['a2c']}"
    assert "is (8, 4) there and (8, 6) here" in call(other, tmp_path).err
    assert not list(tmp_path.iterdir())


def test_a_run_in_python_starts_from_another(runs: dict[str, Path], tmp_path: Path) -> None:
    network = {"hidden": [8], "normalize": True}
    settings: Any = {"steps": 16, "network": network, "runs": tmp_path, "quiet": True}
    run = operant.train("a2c", "CartPole-v1", recipe="none", from_run=runs["a2c"], **settings)
    assert json.loads((run.path / "run.json").read_text())["from"]["run"] == str(runs["a2c"])
    with pytest.raises(UsageError, match=r"nowhere: no such run"):
        operant.train("a2c", "CartPole-v1", from_run="nowhere", **settings)
