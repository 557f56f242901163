"""The documentation is true: its example, links and tables are right, and installing works."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest
from test_layers import LEVEL

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = ["README.md", *(path.relative_to(ROOT).as_posix() for path in DOCS)]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
SECTION_LINK = re.compile(r"\]\(([^)#:]*)#([^)]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def python_of(page: str) -> str:
    text = (ROOT / page).read_text("utf-8")
    return "\n".join(code for language, code in FENCE.findall(text) if language == "python")


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


def test_the_table_of_code_lines_is_current() -> None:
    lines = runpy.run_path(str(ROOT / "docs" / "code_lines.py"))
    assert lines["page"]() == (ROOT / "docs" / "agents" / "index.md").read_text("utf-8"), (
        "run `python docs/code_lines.py` and commit docs/agents/index.md"
    )
    assert lines["code_lines"]('"""Doc."""\n\nx = 1  # one\n# none\ny = (\n    2\n)\n') == 4


@pytest.mark.parametrize("page", [*PAGES, "CONTRIBUTING.md"])
def test_links_between_files_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    missing = [to for to in LINK.findall(text) if not ((ROOT / page).parent / to).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES)
def test_links_to_sections_lead_to_a_heading(page: str) -> None:
    file = ROOT / page
    links = SECTION_LINK.findall(file.read_text("utf-8"))
    missing = [f"{to}#{section}" for to, section in links if section not in anchors(file, to)]
    assert missing == []


def anchors(file: Path, to: str) -> set[str]:
    """The sections of the page that a link in `file` leads to; of itself if `to` is empty."""
    text = (file.parent / to if to else file).read_text("utf-8")
    return {
        re.sub(r"[^\w -]", "", line).lower().replace(" ", "-") for line in HEADING.findall(text)
    }


def test_the_table_of_layers_is_current() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    rows = re.findall(r"^  \| (\d+) \| (.+) \|$", text, re.MULTILINE)
    shown = {n.removesuffix(".py"): int(k) for k, v in rows for n in re.findall(r"`(.+?)`", v)}
    assert shown == {name: level for name, level in LEVEL.items() if name != "__main__"}


def test_an_editable_install_is_a_path_where_type_checkers_find_the_package() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    assert settings["package-dir"] == {"": "."}  # else an import hook, which mypy does not follow
    assert settings["package-data"]["operant"] == ["py.typed"]
    assert (ROOT / "operant" / "py.typed").exists()


def test_an_install_leaves_out_no_directory_of_the_package() -> None:
    with_source = {file.parent for file in (ROOT / "operant").rglob("*.py")}
    assert [folder for folder in with_source if not (folder / "__init__.py").exists()] == []


def test_every_constraint_is_a_plain_pin() -> None:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert "torch==2.13.0" in pins
    assert [pin for pin in pins if not re.fullmatch(r"[\w.-]+==[0-9][\w.]*", pin)] == []
