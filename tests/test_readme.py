"""What the documentation shows is true: its Python runs, its generated page is current."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = ["README.md", *(path.relative_to(ROOT).as_posix() for path in DOCS)]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def python_of(page: str) -> str:
    text = (ROOT / page).read_text("utf-8")
    return "\n".join(code for language, code in FENCE.findall(text) if language == "python")


@pytest.mark.parametrize("page", [page for page in PAGES[1:] if python_of(page)])
def test_the_python_on_a_page_runs_from_top_to_bottom(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(python_of(page), page, "exec"), {"__name__": "page"})


def test_the_example_of_the_readme_leaves_a_finished_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown: dict[str, Any] = {"__name__": "page"}
    exec(compile(python_of("README.md"), "README.md", "exec"), shown)
    assert shown["episode"].length >= 8
    assert (tmp_path / "policy.gif").stat().st_size > 0
    assert len(list((tmp_path / "runs").glob("*/done.json"))) == 1


def test_the_example_of_the_readme_is_ten_lines() -> None:
    lines = [line for line in python_of("README.md").splitlines() if line.strip()]
    assert len(lines) <= 10


def test_the_page_of_flags_is_current() -> None:
    generate = runpy.run_path(str(ROOT / "docs" / "generate.py"))
    assert generate["page"]() == (ROOT / "docs" / "command-line.md").read_text("utf-8"), (
        "run `make docs` and commit docs/command-line.md"
    )


@pytest.mark.parametrize("page", [*PAGES, "CONTRIBUTING.md"])
def test_links_between_files_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    missing = [to for to in LINK.findall(text) if not ((ROOT / page).parent / to).exists()]
    assert missing == []


def test_every_constraint_is_a_plain_pin() -> None:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert "torch==2.13.0" in pins
    assert [pin for pin in pins if not re.fullmatch(r"[\w.-]+==[0-9][\w.]*", pin)] == []
