"""Memory that a training process keeps."""

from __future__ import annotations

import subprocess
import sys

import pytest

# A block of 48 MB, 11,718 pages, comes and goes as activations do. In a process of its own: what
# other tests have allocated must not matter.
PROGRAM = """
import resource, sys
from operant.session.machine import keep_memory

def pages():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    bytearray(48_000_000)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

if "keep" in sys.argv:
    keep_memory()
print(*(pages() for _ in range(4)))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the C library of Linux")
@pytest.mark.parametrize(("words", "kept"), [(["keep"], True), ([], False)])
def test_blocks_that_come_and_go_are_asked_of_the_system_once(words: list[str], kept: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=True
    )
    first, *others = (int(count) for count in done.stdout.split())
    assert first > 10_000
    assert (max(others) < 100) is kept
