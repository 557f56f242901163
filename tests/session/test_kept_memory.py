"""Memory that a training process keeps."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Blocks of 20 to 36 MB, 20,000 pages in all, come and go as activations do. A process of its own:
# what other tests have allocated must not matter.
PROGRAM = """
import resource
import torch
from operant.session.machine import keep_memory

def pages():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for size in (5_000_000, 9_000_000, 7_000_000):
        torch.ones(size)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

keep_memory()
print(*(pages() for _ in range(4)))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the C library of Linux")
def test_blocks_that_come_and_go_are_asked_of_the_system_once() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    first, *others = (int(count) for count in done.stdout.split())
    assert first > 2000
    assert min(others) < 100
