"""Operations over nested arrays keep the structure and touch every leaf once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from operant.core import tree
from operant.core.experience import HiddenState
from operant.core.namedarraytuple import namedarraytuple


class Plain(NamedTuple):
    a: Any
    b: Any


Record = namedarraytuple("Record", "a b")


@pytest.mark.parametrize("kind", [Plain, Record])
def test_map_keeps_named_tuples_and_dicts(kind: Any) -> None:
    made = tree.map(lambda x: x + 1, kind({"x": 1, "y": (2, [3])}, None))
    assert type(made) is kind
    assert (made.a, made.b) == ({"x": 2, "y": (3, [4])}, None)


def test_map_keeps_the_type_of_a_hidden_state() -> None:
    made = tree.map(lambda x: x * 2, HiddenState(h=torch.ones(2)))
    assert type(made) is HiddenState
    assert made["h"].tolist() == [2, 2]


def test_map_takes_dicts_apart_by_name_not_by_order() -> None:
    made = tree.map(lambda x, y: x - y, {"x": 10, "y": 20}, {"y": 2, "x": 1})
    assert made == {"x": 9, "y": 18}


def test_map_walks_several_records_at_once() -> None:
    made = tree.map(lambda x, y: x * y, Record(2, (3, None)), Record(5, (7, None)))
    assert (made.a, made.b) == (10, (21, None))


def test_map_refuses_tuples_of_other_lengths() -> None:
    with pytest.raises(ValueError, match="shorter"):
        tree.map(lambda x, y: x, (1, 2), (1,))


def test_leaves_come_with_their_paths_and_without_none() -> None:
    found = list(tree.leaves(Record({"x": 1, "y": None}, [2, (3,)])))
    assert found == [("a.x", 1), ("b.0", 2), ("b.1.0", 3)]


def test_index_reaches_every_leaf() -> None:
    made: dict[str, Any] = tree.index({"x": np.arange(3), "y": (torch.arange(3) * 2, None)}, 2)
    assert (int(made["x"]), int(made["y"][0]), made["y"][1]) == (2, 4, None)


def test_write_goes_by_name_whatever_the_order() -> None:
    target = {"x": np.zeros(2), "y": np.zeros(2)}
    tree.write(target, 1, {"y": 5, "x": 3})
    assert (target["x"].tolist(), target["y"].tolist()) == ([0, 3], [0, 5])


def test_numpy_and_torch_see_the_same_bytes() -> None:
    x = np.zeros(2, np.float32)
    seen = tree.tensors({"x": x, "n": None})
    seen["x"][1] = 7
    assert x.tolist() == [0, 7]
    assert tree.numpy(seen)["x"].ctypes.data == seen["x"].data_ptr()


def test_to_does_not_copy_what_is_there_already() -> None:
    x = torch.zeros(2)
    assert tree.to({"x": x}, torch.device("cpu"))["x"] is x
    assert tree.to({"x": x}, torch.device("meta"))["x"].device.type == "meta"
