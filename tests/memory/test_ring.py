"""Rows of small parts side by side, and of large ones apart."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from operant.memory.ring import SMALL, Ring, layout, row_bytes
from operant.memory.storage import saved

EXAMPLE: dict[str, Any] = {
    "seen": {"small": np.zeros((1, 2, 3), np.float32), "large": np.zeros((1, 2, 65), np.float32)},
    "none": {},
    "flag": np.zeros((1, 2), bool),
    "number": np.zeros((1, 2)),
}


def filled(rows: int = 5) -> Ring:
    """A ring in which every number tells its place."""
    ring = Ring(EXAMPLE, rows, 2)
    places = np.arange(rows * 2).reshape(rows, 2)
    ring.fields["seen"]["small"][:] = places[..., None]
    ring.fields["seen"]["large"][:] = places[..., None]
    ring.fields["flag"][:] = places % 2
    ring.fields["number"][:] = places
    return ring


def test_small_parts_lie_side_by_side_and_large_ones_apart() -> None:
    dtype, slots = layout(EXAMPLE)
    assert slots == {"seen": {"small": "0", "large": ""}, "none": {}, "flag": "1", "number": "2"}
    assert dtype.itemsize == 24
    assert row_bytes(EXAMPLE) == 24 + 65 * 4 > SMALL


def test_places_are_read_in_their_order_and_after_the_last_comes_the_first() -> None:
    places = np.array([[8, 3], [10, 5]])
    taken = filled().read(places, {})
    assert taken["number"].tolist() == [[8, 3], [0, 5]]
    assert taken["seen"]["small"][..., 0].tolist() == [[8, 3], [0, 5]]
    assert taken["seen"]["large"][..., 64].tolist() == [[8, 3], [0, 5]]
    assert taken["flag"].tolist() == [[False, True], [False, True]]
    assert taken["none"] == {}


def test_of_some_fields_only_the_first_rows_are_read() -> None:
    taken = filled().read(np.array([[8], [10]]), {"number": 1, "seen": 1})
    sizes = {"number": len(taken["number"]), "flag": len(taken["flag"])}
    assert sizes == {"number": 1, "flag": 2}
    assert [len(x) for x in taken["seen"].values()] == [1, 1]


@pytest.mark.parametrize("used", [0, 3, 5])
def test_the_rows_that_were_used_are_restored(used: int) -> None:
    ring, other = filled(), Ring(EXAMPLE, 5, 2)
    other.load_state_dict(ring.state_dict(used, partial(saved, compress=True)))
    assert other.fields["number"].sum() == sum(range(2 * used))
    assert other.fields["seen"]["large"].sum() == 65 * sum(range(2 * used))
