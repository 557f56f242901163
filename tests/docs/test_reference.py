"""The API reference has a page for each package, and on it every public name."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "reference").glob("*.md"))
INTERNAL = {"cli", "processes", "recipes"}  # commands, workers and data: not to be called


def test_every_package_has_a_page() -> None:
    packages = {path.parent.name for path in (ROOT / "operant").glob("*/__init__.py")}
    assert {page.stem for page in PAGES} == packages - INTERNAL | {"operant"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documentation, built without a warning."""
    pytest.importorskip("mkdocstrings", reason="the extra `docs` is not installed")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir"]
    built = subprocess.run(
        [*command, str(folder)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (built.returncode, built.stderr) == (0, "")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_a_page_has_every_public_name_of_its_package(page: Path, site: Path) -> None:
    package = "operant" if page.stem == "operant" else f"operant.{page.stem}"
    html = (site / "reference" / f"{page.stem}.html").read_text("utf-8")
    shown = re.findall(rf'<h2 id="{re.escape(package)}\.(?:\w+\.)?(\w+)"', html)
    assert sorted(shown) == sorted(importlib.import_module(package).__all__)


@pytest.mark.slow
def test_signatures_docstrings_and_the_comments_of_settings_are_shown(site: Path) -> None:
    agents = (site / "reference" / "agents.html").read_text("utf-8")
    text = re.sub(r"<[^>]+>", "", agents)
    assert "output_space(\n    action_space: dict[str, Space],\n)" in text
    assert "Learns from each rollout in several epochs, while the policy stays near." in text
    assert "GAE lambda: trade-off of bias and variance of the advantages" in text
