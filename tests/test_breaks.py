"""The breaks of `breaks.py` still fit the source; running them is a matter of minutes."""

from __future__ import annotations

from collections import Counter

import pytest
from breaks import BREAKS, ROOT, TESTS, Break


@pytest.mark.parametrize("found", BREAKS, ids=lambda found: f"{found.agent}: {found.what}")
def test_a_break_meets_its_expression_exactly_once(found: Break) -> None:
    source = (ROOT / "operant" / found.file).read_text()
    assert source.count(found.old) == 1
    compile(source.replace(found.old, found.new), found.file, "exec")


def test_every_agent_is_broken_in_many_ways() -> None:
    assert min(Counter(found.agent for found in BREAKS)[agent] for agent in TESTS) >= 10
