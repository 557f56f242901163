"""Spaces of any structure, by name and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces as gs

from operant.core.errors import UsageError
from operant.envs.nested_spaces import flatten, named, unflatten

BOX = gs.Box(-1, 1, (2,), np.float32)
NESTED = gs.Dict(
    {
        "arm": gs.Dict({"angle": BOX, "grip": gs.Discrete(2)}),
        "pair": gs.Tuple((gs.Discrete(3), gs.Tuple((BOX, gs.MultiBinary(2))))),
        "flat": BOX,
    }
)


def test_a_plain_space_gets_the_name_given() -> None:
    assert named(BOX, "observation") == {"observation": BOX}


def test_nested_spaces_are_named_by_dotted_path() -> None:
    names = ["arm.angle", "arm.grip", "flat", "pair.0", "pair.1.0", "pair.1.1"]
    assert sorted(named(NESTED, "action")) == names
    assert named(NESTED, "action")["pair.0"] == gs.Discrete(3)


@pytest.mark.parametrize(
    "space",
    [BOX, NESTED, gs.Tuple((BOX, BOX)), gs.Tuple((NESTED, BOX)), gs.Dict({"a": gs.Tuple((BOX,))})],
    ids=["plain", "nested", "tuple", "dict in tuple", "tuple in dict"],
)
def test_a_value_goes_through_its_names_and_back(space: Any) -> None:
    space.seed(0)
    value = space.sample()
    flat = flatten(space, value, "action")
    assert list(flat) == list(named(space, "action"))
    back = unflatten(space, flat, name="action")
    assert str(back) == str(value)


def test_flatten_takes_the_names_that_named_gives() -> None:
    value = {"arm": {"angle": 1, "grip": 2}, "pair": (3, (4, 5)), "flat": 6}
    assert flatten(NESTED, value, "x") == {
        "arm.angle": 1,
        "arm.grip": 2,
        "flat": 6,
        "pair.0": 3,
        "pair.1.0": 4,
        "pair.1.1": 5,
    }


@pytest.mark.parametrize("space", [gs.Text(3), gs.Sequence(BOX), gs.Graph(BOX, None)])
def test_a_space_without_a_fixed_shape_is_refused_by_name(space: Any) -> None:
    with pytest.raises(UsageError, match=r"space 'a\.b': .* has no fixed shape; expected Box"):
        named(gs.Dict({"a": gs.Dict({"b": space})}), "observation")


def test_a_plain_space_without_a_fixed_shape_is_refused_by_its_kind() -> None:
    with pytest.raises(UsageError, match="space 'Text': Text has no fixed shape"):
        named(gs.Text(3), "observation")


def test_two_parts_of_the_same_path_are_refused() -> None:
    space = gs.Dict({"a": gs.Dict({"b": BOX}), "a.b": BOX})
    with pytest.raises(UsageError, match=r"space 'a\.b': two parts"):
        named(space, "observation")
