"""Every code block of README and docs runs alone, as printed."""

from __future__ import annotations

from pathlib import Path

import pytest
from code_blocks import LANGUAGES, NEEDS, Block, blocks, run

ALL = blocks()
RUN = [block for block in ALL if block.language in LANGUAGES]
QUICK = [block for block in RUN if "slow" not in block.needs]
SLOW = [block for block in RUN if "slow" in block.needs]


def test_every_block_says_what_it_is() -> None:
    unknown = [str(b) for b in ALL if b.language not in (*LANGUAGES, "text") or b.needs - NEEDS]
    assert unknown == []


def test_the_pages_have_blocks_of_every_kind() -> None:
    assert {block.language for block in RUN} == set(LANGUAGES)
    assert len(RUN) > 20


@pytest.mark.every(3)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("block", QUICK, ids=str)
def test_a_block_runs_alone(block: Block, tmp_path: Path) -> None:
    done = run(block, tmp_path, seconds=280)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("block", SLOW, ids=str)
def test_a_long_block_runs_alone(block: Block, tmp_path: Path) -> None:
    done = run(block, tmp_path, seconds=1700)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
