"""Writes the table of code lines in `agents/index.md`, so that it stays current."""

from __future__ import annotations

import ast
import inspect
import io
import re
import tokenize
from pathlib import Path

from operant.agents.registry import AGENTS

PAGE = Path(__file__).parent / "agents" / "index.md"
BEGIN, END = "<!-- lines -->", "<!-- end of lines -->"
SILENT = (
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
)


def code_lines(source: str) -> int:
    """Lines that are neither empty nor comments nor docstrings."""
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in SILENT:
            found |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            first = node.body[0]
            found -= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return len(found)


def table() -> str:
    """By file of an algorithm: the agents that it has, and its lines of code."""
    files: dict[str, list[str]] = {}
    for name, known in AGENTS.items():
        files.setdefault(inspect.getfile(known.cls), []).append(name)
    rows = [
        f"| {', '.join(f'`{name}`' for name in names)} | `operant/agents/{Path(file).name}` "
        f"| {code_lines(Path(file).read_text('utf-8'))} |"
        for file, names in files.items()
    ]
    return "\n".join(("| agents | file | lines of code |", "|---|---|---:|", *rows))


def page() -> str:
    """The page with the table as it should be."""
    pattern = re.compile(f"(?<={BEGIN}\n\n).*?(?=\n\n{END})", re.DOTALL)
    return pattern.sub(lambda _: table(), PAGE.read_text("utf-8"))


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
