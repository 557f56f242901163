"""A reader that has had enough is no failure; any other pipe that breaks is."""

from __future__ import annotations

import subprocess
import sys

BROKEN = """
import sys
from operant.cli import main as cli

def broken(argv):
    raise BrokenPipeError(32, "Broken pipe")

cli.COMMANDS["list"] = (broken, *cli.COMMANDS["list"][1:])
sys.exit(cli.main(["list"]))
"""


def test_a_reader_that_closes_is_no_failure() -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "operant", "list"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    child.stdout.close()
    assert child.stderr is not None
    assert child.stderr.read() == ""
    assert child.wait(60) == 0


def test_another_pipe_that_breaks_is_a_failure() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BROKEN], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "BrokenPipeError" in done.stderr
