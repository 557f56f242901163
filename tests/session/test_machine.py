"""Memory that a training process keeps."""

from __future__ import annotations

import resource
import sys

import pytest
import torch

from operant.session.machine import keep_memory


@pytest.mark.skipif(sys.platform != "linux", reason="the C library of Linux")
def test_blocks_that_come_and_go_are_not_asked_of_the_system_again() -> None:
    keep_memory()

    def pages() -> int:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for size in (5_000_000, 9_000_000, 7_000_000):  # 20 to 36 MB: 25,000 pages in all
            torch.ones(size)
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    pages()
    assert min(pages() for _ in range(3)) < 100
