"""The conversion table, cell by cell, and what cannot be joined."""

import pytest
import torch

from operant.core.errors import UsageError
from operant.core.spaces import Shape
from operant.networks.rank import check_joined, convert, convert_shape

TABLE: list[tuple[Shape, int, Shape]] = [
    ((6,), 1, (6,)),
    ((6,), 2, (6, 1)),
    ((6,), 3, (6, 1, 1)),
    ((6,), 4, (6, 1, 1, 1)),
    ((6, 5), 1, (30,)),
    ((6, 5), 2, (6, 5)),
    ((6, 5), 3, (30, 1, 1)),
    ((6, 5), 4, (6, 5, 1, 1)),
    ((6, 4, 3), 1, (72,)),
    ((6, 4, 3), 2, (6, 12)),
    ((6, 4, 3), 3, (6, 4, 3)),
    ((6, 4, 3), 4, (6, 1, 4, 3)),
    ((6, 5, 4, 3), 1, (360,)),
    ((6, 5, 4, 3), 2, (6, 60)),
    ((6, 5, 4, 3), 3, (30, 4, 3)),
    ((6, 5, 4, 3), 4, (6, 5, 4, 3)),
    ((), 1, (1,)),
    ((), 3, (1, 1, 1)),
]


@pytest.mark.parametrize(("shape", "rank", "expected"), TABLE)
def test_a_shape_reads_at_another_rank_as_the_table_says(
    shape: Shape, rank: int, expected: Shape
) -> None:
    assert convert_shape(shape, rank) == expected


@pytest.mark.parametrize(("shape", "rank", "expected"), TABLE)
def test_a_tensor_converts_by_reshaping_alone(shape: Shape, rank: int, expected: Shape) -> None:
    x = torch.arange(2 * torch.Size(shape).numel()).view(2, *shape)
    y = convert(x, rank)
    assert tuple(y.shape) == (2, *expected)
    assert torch.equal(y.flatten(), x.flatten())


@pytest.mark.parametrize(("shape", "rank"), [((1, 2, 3, 4, 5), 1), ((2,), 5), ((2,), 0)])
def test_ranks_beyond_the_table_are_refused(shape: Shape, rank: int) -> None:
    with pytest.raises(UsageError, match=f"rank {rank}: expected a rank from 1 to 4"):
        convert_shape(shape, rank)


def test_sizes_of_one_stand_beside_any_size() -> None:
    check_joined({"image": (4, 8, 8), "vector": (3,)}, (7, 8, 8))


def test_positions_that_differ_are_refused_with_both_shapes() -> None:
    with pytest.raises(UsageError, match=r"image gives \(4, 8, 8\).*\(4, 9, 9\)"):
        check_joined({"image": (4, 8, 8)}, (4, 9, 9))


def test_features_that_do_not_add_up_are_refused_with_the_right_shape() -> None:
    with pytest.raises(UsageError, match=r"takes \(9,\).*input_shape \(7,\)"):
        check_joined({"a": (4,), "b": (3,)}, (9,))
