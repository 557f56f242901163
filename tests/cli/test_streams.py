"""Terminals that know only ASCII, and streams that the shell closed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PRINTING = "from operant.cli.streams import prepare_streams; prepare_streams(); "


def run(code: str, shell: str = "", **env: str) -> subprocess.CompletedProcess[bytes]:
    words = f'"$0" -c "$1" {shell}'
    command = ["sh", "-c", words, sys.executable, code]
    return subprocess.run(command, capture_output=True, check=False, env=os.environ | env)


@pytest.mark.parametrize(
    "env",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
)
def test_what_an_ascii_terminal_cannot_show_is_escaped(env: dict[str, str]) -> None:
    result = run(PRINTING + r"print('9 \u00b1 1')", **env)
    assert (result.returncode, result.stdout, result.stderr) == (0, b"9 \\xb1 1\n", b"")


def test_a_surrogate_is_escaped_too() -> None:
    result = run(PRINTING + r"print('a\ud800b')")
    assert (result.returncode, result.stdout) == (0, b"a\\ud800b\n")


@pytest.mark.parametrize("closing", [">&-", "2>&-", ">&- 2>&-"])
def test_a_closed_stream_swallows_what_is_printed_and_its_number_stays_taken(closing: str) -> None:
    code = "import os, sys; print(1); print(2, file=sys.stderr); sys.exit(os.open('/', 0) - 3)"
    assert run(PRINTING + code, closing).returncode == 0


def test_help_with_a_closed_output_is_no_error() -> None:
    code = "from operant.cli.main import main; raise SystemExit(main(['--help']))"
    result = run(code, ">&-")
    assert (result.returncode, result.stderr) == (0, b"")
