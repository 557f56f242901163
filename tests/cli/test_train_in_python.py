"""Training from Python: recipes and names as on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from running import call

import operant
from operant.core.errors import UsageError

TINY: dict[str, Any] = {
    "steps": 20,
    "threads": 1,
    "env": {"num_envs": 2},
    "network": {"hidden": (8,)},
    "eval": {"episodes": 1},
}


def test_the_recipe_is_announced_and_none_gives_plain_defaults(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tuned = operant.train("a2c", "CartPole-v1", runs=tmp_path, **TINY)
    assert "recipe a2c-cartpole: mean return 475" in capsys.readouterr().out
    plain = operant.train("a2c", "CartPole-v1", runs=tmp_path, recipe="none", **TINY)
    assert "recipe" not in capsys.readouterr().out
    assert tuned.config.agent.gamma == 0.98  # type: ignore[attr-defined]  # an agent's own setting
    assert plain.config.agent.gamma == 0.99  # type: ignore[attr-defined]  # an agent's own setting


def test_a_recipe_is_taken_by_name_with_its_own_environment(tmp_path: Path) -> None:
    settings = {**TINY, "agent": {"length": 4, "minibatch": 8}, "runs": tmp_path, "quiet": True}
    run = operant.train("ppo", recipe="ppo-cartpole-memory", **settings)
    assert (run.config.env.id, run.config.env.hide) == ("CartPole-v1", (1, 3))
    assert run.config.network.lstm == 64


def test_a_run_with_a_name_is_found_by_it(tmp_path: Path) -> None:
    run = operant.train("a2c", runs=tmp_path, name="mine", quiet=True, **TINY)
    assert run.path == tmp_path / "mine"
    assert call("eval mine --episodes 1", tmp_path).code == 0
    with pytest.raises(UsageError, match=r"name = 'mine': .*exists already"):
        operant.train("a2c", runs=tmp_path, name="mine", quiet=True, **TINY)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize("name", ["a/b", "..", ".hidden", "two words", "-x"])
def test_a_name_that_is_no_plain_word_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"name = .*: expected up to 200 letters, digits"):
        operant.train("a2c", runs=tmp_path, name=name, quiet=True, **TINY)
    assert not list(tmp_path.iterdir())


def test_an_evaluation_is_named_alike_in_python_and_in_json(tmp_path: Path) -> None:
    run = operant.train("a2c", runs=tmp_path, name="mine", quiet=True, **TINY)
    found = json.loads(call("eval mine --json --episodes 3", tmp_path).out)
    assert found == run.eval(episodes=3)
    assert found["eval/episodes"] == 3
