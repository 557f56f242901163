"""A run directory that somebody hostile made, given to every command: nothing happens."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from hostile import KINDS, Place
from running import call, train

from operant.cli.main import COMMANDS

pytestmark = pytest.mark.usefixtures("nothing_left_behind")
SMALL = "--steps 40 --quiet --eval.every none"
LINES: dict[str, tuple[str, ...]] = {
    "train": (f"train --config RUN/config.yaml {SMALL}", f"train a2c --from RUN {SMALL}"),
    "resume": ("resume RUN --quiet", "resume RUN --steps 40 --quiet", "resume --runs ."),
    "eval": ("eval RUN --episodes 1 --json", "eval RUN --episodes 1 --best"),
    "play": ("play RUN --record made.gif",),
    "plot": ("plot RUN", "plot RUN --metric eval/mean_reward --out made.png"),
    "compare": ("compare RUN --json", "compare --runs ."),
    "sweep": (
        "sweep --resume RUN --jobs 1 --quiet",
        f"sweep --config RUN/config.yaml --seeds 1 {SMALL}",
    ),
    "doctor": ("doctor RUN", "doctor RUN --json"),
    "list": ("list CartPole",),
    "check-env": ("check-env CartPole-v1 --steps 5",),
}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was stopped before its end."""
    run = train("train a2c --env.num-envs 2 --steps 20", tmp_path_factory.mktemp("good"))
    (run / "done.json").unlink()
    return run


def test_every_command_is_tried() -> None:
    assert LINES.keys() == COMMANDS.keys()


@pytest.mark.every(4)
@pytest.mark.parametrize("kind", KINDS)
def test_a_hostile_run_does_nothing_to_any_command(
    kind: str, good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i, line in enumerate(line for lines in LINES.values() for line in lines):
        run = tmp_path / str(i) / "run"
        shutil.copytree(good, run)
        place = Place(run)
        KINDS[kind](place)
        before = place.snapshot()
        monkeypatch.chdir(run.parent)
        sys.modules.pop("evil", None)
        result = call(line.replace("RUN", "run"))
        assert result.code in (0, 1, 2), (line, result)
        assert "Traceback" not in result.err, (line, result)
        assert result.code == 0 or result.err.startswith("operant: ") or result.out, (line, result)
        assert not place.canary.exists(), (line, result)
        assert place.snapshot() == before, (line, result)


@pytest.mark.parametrize(
    "text",
    [
        "seed: !!python/object/apply:os.mkdir [canary]",
        "seed: !!python/name:os.system",
        "env: {_target_: os.mkdir, path: canary}",
        "agent: {lr: !!python/object/new:os.mkdir [canary]}",
        "network: !!python/module:evil",
        "steps: __import__('os').mkdir('canary')",
    ],
)
def test_a_configuration_runs_no_code(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.yaml").write_text(f"algorithm: a2c\n{text}\n")
    result = call("train --config run.yaml --quiet")
    assert (result.code, result.err.count("\n")) == (2, 1), result
    assert [path.name for path in tmp_path.iterdir()] == ["run.yaml"]
