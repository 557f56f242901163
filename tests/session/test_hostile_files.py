"""Files of a run that were altered or made up are refused in one line by whoever reads them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from running import Result, call, train

from operant.core.errors import CheckpointError, UsageError
from operant.session.checkpoint.manifest import MANIFEST, read_manifest
from operant.session.log import METRICS, read_metrics

DEEP = "[" * 100_000 + "]" * 100_000
LINES = {
    "nested deeply": DEEP,
    "null": "null",
    "a list": "[1]",
    "no step": "{}",
    "text for a number": '{"step": 5, "x": "y"}',
    "a list for a number": '{"step": 5, "x": [1]}',
    "a mapping for a number": '{"step": 5, "x": {"a": 1}}',
    "true for a number": '{"step": 5, "x": true}',
    "an infinite step": '{"step": 1e999, "x": 1}',
    "a step that is none": '{"step": NaN, "x": 1}',
    "half a step": '{"step": 7.5, "x": 1}',
    "a step as text": '{"step": "7", "x": 1}',
    "a step of 30 digits": f'{{"step": {"9" * 30}, "x": 1}}',
    "a step of 5,000 digits": f'{{"step": {"9" * 5_000}, "x": 1}}',
    "a value of 400 digits": f'{{"step": 5, "x": {"9" * 400}}}',
}


@pytest.mark.parametrize("name", LINES)
def test_a_line_that_is_none_of_metrics_is_refused_by_its_number(name: str, tmp_path: Path) -> None:
    (tmp_path / METRICS).write_text('{"step": 1, "x": 2}\n' + LINES[name] + "\n")
    with pytest.raises(UsageError, match=r"metrics\.jsonl:2: not a line of metrics"):
        read_metrics(tmp_path)


def test_what_is_not_finite_is_a_value_of_the_log(tmp_path: Path) -> None:
    (tmp_path / METRICS).write_text('{"step": 1, "x": null}\n{"step": 2, "x": 1e999}\n')
    steps, values = read_metrics(tmp_path)["x"]
    assert (steps.tolist(), repr(values.tolist())) == ([1, 2], "[nan, inf]")


def one_line(result: Result, part: str) -> None:
    assert result.code in (1, 2), result
    assert result.err.startswith("operant: error: ")
    assert (result.err.count("\n"), part in result.err) == (1, True)


@pytest.mark.parametrize(
    "content", ["null", "3", "[1]", '{"from": 3}', '{"from": {}}x', "\0", DEEP]
)
def test_resume_refuses_a_provenance_that_is_none(content: str, tmp_path: Path) -> None:
    run = train("train a2c --steps 20", tmp_path)
    (run / "run.json").write_text(content)
    (run / "done.json").unlink()
    one_line(call(["resume", str(run), "--quiet"]), "run.json: is not what a run writes there")


def forged(path: Path, **changes: Any) -> None:
    """A manifest with other values and the hash that fits them."""
    manifest = json.loads((path / MANIFEST).read_text()) | changes
    del manifest["sha256"]
    content = json.dumps(manifest, sort_keys=True).encode()
    manifest["sha256"] = hashlib.sha256(content).hexdigest()
    (path / MANIFEST).write_text(json.dumps(manifest))


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = train("train a2c --steps 20", tmp_path_factory.mktemp("runs"))
    return sorted((run / "checkpoints").iterdir())[-1]


@pytest.mark.parametrize(
    "changes",
    [
        {"versions": 3},
        {"versions": {"torch": 2}},
        {"reasons": 3},
        {"reasons": [1]},
        {"exact": "yes"},
        {"step": "9"},
        {"files": 3},
        {"extra": [1]},
        {"schema": [1]},
    ],
)
def test_a_forged_manifest_is_refused_by_its_types(changes: dict[str, Any], saved: Path) -> None:
    before = (saved / MANIFEST).read_bytes()
    forged(saved, **changes)
    with pytest.raises(CheckpointError, match=MANIFEST):
        read_manifest(saved)
    (saved / MANIFEST).write_bytes(before)


def test_doctor_passes_over_versions_of_packages_that_it_does_not_know(saved: Path) -> None:
    before = (saved / MANIFEST).read_bytes()
    forged(saved, versions={"no-such-package": "1", "": "2"})
    result = call(["doctor", str(saved.parent.parent)])
    assert "no-such-package" not in result.out + result.err
    assert result.code == 0
    (saved / MANIFEST).write_bytes(before)
