"""Configurations refuse numbers that cannot be meant; errors suggest what could be."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import pytest

from operant.core.config import Config, Count, CountOrZero, Fraction, NotNegative, Positive, Range
from operant.core.errors import UsageError, suggest


@dataclass(frozen=True, kw_only=True)
class Settings(Config):
    lr: Positive = 1.0
    bound: NotNegative = 0.0
    gamma: Fraction = 1.0
    steps: Count = 1
    starts: CountOrZero = 0
    word: str = "x"


BAD: list[tuple[str, Any]] = [
    *((name, math.nan) for name in ("lr", "bound", "gamma", "steps", "starts")),
    *((name, math.inf) for name in ("lr", "bound", "gamma", "steps", "starts")),
    *((name, -1) for name in ("lr", "bound", "gamma", "steps", "starts")),
    ("lr", 0),
    ("gamma", 1.0000001),
    ("steps", 0),
]


@pytest.mark.parametrize(("name", "value"), BAD)
def test_a_number_outside_its_range_is_refused_by_field_and_value(name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=rf"^{name} = {value}: expected a "):
        Settings(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"), [("lr", 1e-300), ("bound", 0), ("gamma", 0), ("gamma", 1), ("starts", 0)]
)
def test_the_edges_of_a_range_are_allowed(name: str, value: float) -> None:
    assert getattr(Settings(**{name: value}), name) == value  # type: ignore[arg-type]  # numbers


def test_a_changed_copy_is_checked_too() -> None:
    with pytest.raises(UsageError, match="gamma = 2: expected a number from 0 to 1"):
        replace(Settings(), gamma=2)


@pytest.mark.parametrize(
    ("allowed", "text"),
    [
        (Range(0, above=True), "a finite number above 0"),
        (Range(1), "a finite number of at least 1"),
        (Range(0, 1), "a number from 0 to 1"),
        (Range(0, 1, above=True), "a number above 0 to 1"),
    ],
)
def test_a_range_says_what_it_allows(allowed: Range, text: str) -> None:
    assert str(allowed) == text


def test_a_near_name_is_suggested() -> None:
    assert suggest("gama", ["gamma", "lam", "lr"]) == "; did you mean 'gamma'?"


def test_without_a_near_name_all_are_listed_in_order() -> None:
    assert suggest("zzz", {"ppo": 1, "dqn": 2}) == "; expected one of dqn, ppo"


def test_with_nothing_known_nothing_is_suggested() -> None:
    assert suggest("x", []) == ""
