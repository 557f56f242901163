"""Opening somebody else's run imports nothing that it names, unless it is trusted."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from running import COMMON, call, only_run, train

import operant
from operant.config import dump_yaml, load_yaml
from operant.core.errors import UsageError
from operant.session.trust import code_named, signed

OWN = "train own_agents:Own --env.num-envs 2 --steps 64"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(OWN, tmp_path_factory.mktemp("made"))


@pytest.fixture
def strange(made: Path, tmp_path: Path) -> Path:
    """A run by somebody else, which names a module that leaves a file when it is imported."""
    run = tmp_path / "strange"
    shutil.copytree(made, run)
    (run / "trust.json").unlink()
    tree = load_yaml(run / "config.yaml") | {"algorithm": "trap:Own"}
    (run / "config.yaml").write_text(dump_yaml(tree))
    trap = f"open({str(tmp_path / 'sprung')!r}, 'w').close()\nfrom own_agents import Own\n"
    (tmp_path / "trap.py").write_text(trap)
    return run


@pytest.mark.parametrize(
    "line", ["eval RUN", "play RUN --record x.gif", "resume RUN --steps 128", "train --config FILE"]
)
def test_no_command_imports_what_a_strange_run_names(
    line: str, strange: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(strange.parent)
    sys.modules.pop("trap", None)
    words = line.replace("RUN", str(strange)).replace("FILE", str(strange / "config.yaml"))
    result = call(words)
    assert result.code == 2
    assert "config.yaml: would import trap:Own, and was not made by you" in result.err
    assert "--trust" in result.err
    with pytest.raises(UsageError, match="would import trap:Own"):
        operant.load(strange)
    assert not (strange.parent / "sprung").exists()


def test_trust_opens_a_strange_run(strange: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(strange.parent)
    assert "over 1 episodes" in call(["eval", str(strange), "--episodes", "1", "--trust"]).out
    assert (strange.parent / "sprung").exists()
    assert operant.load(strange, trust=True).config.algorithm == "trap:Own"
    assert (
        call(["resume", str(strange), "--steps", "96", "--trust", "--force", "--quiet"]).code == 0
    )


def test_plotting_needs_no_code(strange: Path) -> None:
    out = strange.parent / "curve.png"
    assert call(["plot", str(strange), "--out", str(out), "--metric", "eval/mean_reward"]).code == 0
    assert not (strange.parent / "sprung").exists()


def test_a_run_of_ones_own_is_signed_by_a_key_that_only_the_user_can_read(made: Path) -> None:
    assert signed(made) == {"own_agents:Own"}
    key = Path(os.environ["XDG_STATE_HOME"]) / "operant" / "key"
    assert (stat.S_IMODE(key.stat().st_mode), len(key.read_bytes())) == (0o600, 32)


def test_a_signature_is_for_its_names_and_its_user_alone(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = json.loads((made / "trust.json").read_text())
    (tmp_path / "trust.json").write_text(json.dumps(about | {"imports": ["os:system"]}))
    assert signed(tmp_path) == set()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert signed(made) == set()


def test_without_a_place_for_a_key_a_run_is_not_signed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    run = train(OWN, tmp_path / "runs")
    assert not (run / "trust.json").exists()
    assert "would import own_agents:Own" in call(["eval", str(run)]).err


def test_a_plain_run_carries_no_signature(tmp_path: Path) -> None:
    run = train("train a2c --env.num-envs 2 --steps 64", tmp_path)
    assert not (run / "trust.json").exists()


def test_the_code_that_settings_name_is_found_wherever_it_is() -> None:
    tree = {
        "algorithm": "ppo",
        "device": "cuda:1",
        "env": {"id": "my-envs:Maze-v0", "wrappers": ["a.b:Wrap"], "kwargs": {"x": 1}},
        "network": {"path": "nets:Net"},
        "callbacks": ["c:call"],
    }
    assert code_named(tree) == ["my-envs:Maze-v0", "a.b:Wrap", "nets:Net", "c:call"]
    assert code_named({"env": {"id": "ale_py:ALE/Pong-v5"}, "device": "cuda:0"}) == []
    assert code_named({"callbacks": ["operant.callbacks:StopAtReturn(475)"]}) == []
    reached = ["gymnasium.core:os.system", "operant.cli.main:os.system", "evil:f(1)"]
    assert code_named({"callbacks": reached}) == reached


SCRIPT = "import operant.cli.main as m; m.main()"  # as the installed command, which has no `-m`


@pytest.mark.parametrize("command", [["-m", "operant"], ["-P", "-c", SCRIPT]])
def test_a_module_here_does_not_hide_a_library(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("open('sprung', 'w').close()\n")
    package = str(Path(operant.__file__).parents[1])
    words = [sys.executable, *command, "list", "CartPole"]
    env = {**os.environ, "PYTHONPATH": package}
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, (tmp_path / "sprung").exists()) == (0, False), done.stderr


def test_a_command_names_what_it_likes(tmp_path: Path) -> None:
    assert call(f"{OWN} {COMMON}", tmp_path).code == 0
    assert signed(only_run(tmp_path)) == {"own_agents:Own"}
