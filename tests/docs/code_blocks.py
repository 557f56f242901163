"""The code blocks of README and docs, and running one alone, as a reader would who pastes it.

A comment that readers do not see says what a block needs: `<!-- test: slow -->` takes more than
twenty seconds, `<!-- test: clone -->` is run in a clone of the repository, others in an empty
directory. Output and excerpts are fenced as `text`, and are the only blocks that do not run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(
    r"(?:^<!-- test: ([a-z, ]+) -->\n)?^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE
)
LANGUAGES = ("bash", "python", "yaml")
NEEDS = {"slow", "clone"}


class Block(NamedTuple):
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    code: str
    needs: frozenset[str]

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks() -> list[Block]:
    """All blocks of all pages; of those with the same text only the first."""
    found: dict[tuple[str, str], Block] = {}
    for page in PAGES:
        text = page.read_text("utf-8")
        for match in FENCE.finditer(text):
            needs, language, code = match.groups()
            line = text.count("\n", 0, match.start(2)) + 1
            needed = frozenset(filter(None, re.split(r",? ", needs or "")))
            block = Block(page.relative_to(ROOT).as_posix(), line, language, code, needed)
            found.setdefault((language, code), block)
    return list(found.values())


def run(block: Block, folder: Path, seconds: float) -> subprocess.CompletedProcess[str]:
    """Run a block in a fresh process, in an empty directory or a clone of the repository."""
    where, source = folder, ROOT
    if "clone" in block.needs:
        where = source = folder / "clone"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(where)], check=True)
    return subprocess.run(
        command(block, folder),
        cwd=where,
        env=environment(source),
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def command(block: Block, folder: Path) -> list[str]:
    """What a reader would do with a block."""
    if block.language == "bash":
        return ["bash", "-euo", "pipefail", "-c", block.code]
    file = folder / ("block.py" if block.language == "python" else "settings.yaml")
    file.write_text(block.code, "utf-8")
    if block.language == "python":
        return [sys.executable, str(file)]
    return ["operant", "train", "--config", str(file), "--dry-run"]


def environment(source: Path) -> dict[str, str]:
    """An activated virtual environment, with the package as it stands in `source`."""
    bin_dir = Path(sys.executable).parent
    path = os.pathsep.join([str(bin_dir), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "PYTHONPATH": str(source)}
