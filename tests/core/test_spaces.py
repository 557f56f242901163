"""Spaces of any structure, by name and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces as gs

from operant.core.spaces import choices, is_mask

BOX = gs.Box(-1, 1, (2,), np.float32)
NESTED = gs.Dict(
    {
        "arm": gs.Dict({"angle": BOX, "grip": gs.Discrete(2)}),
        "pair": gs.Tuple((gs.Discrete(3), gs.Tuple((BOX, gs.MultiBinary(2))))),
        "flat": BOX,
    }
)


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        (gs.Discrete(4), [4]),
        (gs.Discrete(4, start=2), [4]),
        (gs.MultiDiscrete([2, 3]), [2, 3]),
        (gs.MultiDiscrete(np.array([[2, 3], [4, 5]])), [2, 3, 4, 5]),
        (gs.MultiBinary(3), [2, 2, 2]),
        (gs.MultiBinary((2, 2)), [2, 2, 2, 2]),
        (BOX, []),
    ],
    ids=str,
)
def test_choices_counts_each_discrete_part(space: Any, expected: list[int]) -> None:
    assert choices(space) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("action_mask", True), ("action_mask.choice", True), ("action_masks", False), ("x", False)],
)
def test_a_mask_is_known_by_its_name(name: str, expected: bool) -> None:
    assert is_mask(name) is expected
