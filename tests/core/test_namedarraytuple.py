"""A record slices, assigns and is asked for its fields like one array."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from operant.core.namedarraytuple import ArrayTuple, namedarraytuple

Pair = namedarraytuple("Pair", "left right")
Nest = namedarraytuple("Nest", ["seen", "pair"])


def pair(right: Any = None) -> Any:
    return Pair(np.arange(6).reshape(3, 2), right)


def nest() -> Any:
    return Nest({"a": torch.zeros(3), "b": torch.zeros(3, 2)}, Pair(np.zeros(3), None))


def test_an_index_reaches_into_every_field() -> None:
    row = Pair(np.arange(4), torch.arange(4) * 10)[2]
    assert type(row) is Pair
    assert (int(row.left), int(row.right)) == (2, 20)


def test_a_slice_keeps_the_structure_and_shares_the_bytes() -> None:
    whole = pair(np.zeros(3))
    whole[1:].left[0, 0] = 99
    assert whole.left.tolist() == [[0, 1], [99, 3], [4, 5]]
    assert whole[1:].right.shape == (2,)


def test_an_index_of_several_axes_and_of_a_mask() -> None:
    whole = pair(np.zeros((3, 2)))
    assert whole[1, 0].left == 2
    assert whole[np.array([True, False, True])].left.tolist() == [[0, 1], [4, 5]]


def test_none_stays_none_when_indexed() -> None:
    assert pair()[0].right is None
    assert pair()[0].left.tolist() == [0, 1]


def test_an_index_reaches_into_dicts_and_records_inside() -> None:
    row = nest()[1]
    assert row.seen["b"].shape == (2,)
    assert row.pair.left.shape == ()


def test_assignment_by_structure_writes_each_field_its_own() -> None:
    whole = pair(np.zeros(3))
    whole[0] = Pair(np.array([7, 8]), 5.0)
    assert whole.left.tolist() == [[7, 8], [2, 3], [4, 5]]
    assert whole.right.tolist() == [5.0, 0, 0]


def test_assignment_takes_any_record_of_the_same_fields_in_any_order() -> None:
    swapped = namedarraytuple("Swapped", "right left")
    whole = pair(np.zeros(3))
    whole[1] = swapped(4.0, 9)
    whole[2] = {"right": 6.0, "left": 1}
    assert whole.left.tolist() == [[0, 1], [9, 9], [1, 1]]
    assert whole.right.tolist() == [0, 4.0, 6.0]


def test_assignment_of_a_number_writes_it_into_every_field() -> None:
    whole = nest()
    whole[1:] = 3
    assert whole.seen["b"].tolist() == [[0, 0], [3, 3], [3, 3]]
    assert whole.pair.left.tolist() == [0, 3, 3]


@pytest.mark.parametrize(("value", "expected"), [(Pair(None, 2.0), [0, 1]), (Pair(1, None), [1])])
def test_none_is_skipped_on_either_side_of_an_assignment(value: Any, expected: list[int]) -> None:
    whole = pair() if value.right else pair(np.zeros(3))
    whole[0] = value
    assert whole.left[0].tolist()[: len(expected)] == expected
    assert whole.right is None or whole.right[0] == 0


def test_none_inside_a_dict_field_is_skipped() -> None:
    whole = Nest({"a": None, "b": np.ones(2)}, None)
    whole[0] = Nest({"a": 5.0, "b": None}, None)
    assert whole.seen["a"] is None
    assert whole.seen["b"].tolist() == [1, 1]


def test_in_tests_the_names_of_fields() -> None:
    assert "left" in pair()
    assert "middle" not in pair()
    assert 0 not in pair()


def test_get_gives_the_field_at_a_position() -> None:
    assert pair(8).get(1) == 8
    assert pair(8).get(-2).shape == (3, 2)


def test_items_pairs_names_and_fields() -> None:
    assert [(name, value is None) for name, value in pair().items()] == [
        ("left", False),
        ("right", True),
    ]


def test_iteration_and_length_are_those_of_a_tuple() -> None:
    left, right = pair(8)
    assert (left.shape, right, len(pair())) == ((3, 2), 8, 2)


@pytest.mark.parametrize("name", ["get", "items"])
@pytest.mark.parametrize("form", [str, list])
def test_fields_named_like_methods_are_refused(name: str, form: Any) -> None:
    names = f"left, {name}" if form is str else ["left", name]
    with pytest.raises(ValueError, match=f"Pair: a field may not be named '{name}'"):
        namedarraytuple("Pair", names)


def test_an_index_out_of_range_names_the_field() -> None:
    with pytest.raises(IndexError, match="field 'right'"):
        pair(torch.zeros(2))[2]


def test_an_assignment_that_does_not_fit_names_record_field_and_place() -> None:
    with pytest.raises(ValueError, match=r"Pair\.left\[1\]"):
        pair()[1] = Pair(np.zeros(5), None)


def test_an_assignment_of_other_fields_names_both() -> None:
    with pytest.raises(ValueError, match=r"\('left', 'right'\), not \('seen', 'pair'\)"):
        pair()[0] = nest()[0]


@pytest.mark.parametrize("names", ["a", "abc"])
def test_a_dict_of_other_names_is_refused(names: str) -> None:
    value = Nest(dict.fromkeys(names, 1.0), None)
    with pytest.raises(ValueError, match=r"Nest\.seen\[0\]: expected the names \('a', 'b'\)"):
        nest()[0] = value


def test_the_mixin_works_on_any_named_tuple() -> None:
    assert issubclass(Pair, ArrayTuple)
    assert issubclass(Pair, tuple)
    assert pair(1)._replace(right=2).right == 2
