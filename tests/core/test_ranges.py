"""Configurations refuse values that cannot be meant; errors suggest what could be."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pytest

from operant.agents.dqn import DQNConfig
from operant.agents.ppo import PPOConfig
from operant.core.config import (
    Config,
    Count,
    CountOrZero,
    Fraction,
    NotNegative,
    Positive,
    Range,
    Rate,
    Share,
    variant,
)
from operant.core.errors import UsageError, suggest
from operant.core.schedule import Schedule


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


@dataclass(frozen=True, kw_only=True)
class Typed(Config):
    rate: Rate = Schedule(1.0)
    share: Share = Schedule(1.0)
    count: Count = 1
    ratio: float | None = None
    flag: bool = False
    word: str = "x"
    choice: Literal["adam", "sgd"] = "adam"
    sizes: tuple[Count, ...] = ()
    limit: Count | None = None
    options: dict[str, Any] = field(default_factory=dict)
    part: Settings = Settings()


@pytest.mark.parametrize("number", [1e-3, 1, np.float32(0.25), np.int64(1)])
def test_a_number_is_a_schedule(number: Any) -> None:
    config = PPOConfig(**{"lr": number})
    assert config.lr == Schedule(float(number))
    assert config.lr(10**6) == float(number)
    assert replace(config, gamma=0.5).lr == config.lr


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("rate", -1.0, "a finite number of at least 0"),
        ("rate", math.nan, "a finite number of at least 0"),
        ("rate", "fast", "a number or a Schedule"),
        ("rate", True, "a number or a Schedule"),
        ("share", 2, "a number from 0 to 1"),
        ("count", 2.5, "an integer"),
        ("count", "2", "an integer"),
        ("count", True, "an integer"),
        ("count", None, "an integer"),
        ("ratio", "1", "a number or None"),
        ("ratio", math.nan, "a number or None"),
        ("flag", "yes", "True or False"),
        ("flag", 1, "True or False"),
        ("word", 3, "a string"),
        ("choice", "adamm", "one of 'adam', 'sgd'; did you mean 'adam'?"),
        ("choice", 1, "one of 'adam', 'sgd'"),
        ("sizes", 64, "a tuple"),
        ("limit", 0, "a finite number of at least 1"),
        ("limit", 1.5, "an integer or None"),
        ("options", [1], "a dict"),
        ("part", {}, "a Settings"),
    ],
)
def test_a_value_of_another_type_is_refused_by_field_value_and_what_was_expected(
    name: str, value: Any, expected: str
) -> None:
    with pytest.raises(UsageError) as caught:
        Typed(**{name: value})
    assert str(caught.value) == f"{name} = {value!r}: expected {expected}"


def test_a_wrong_element_is_refused_by_its_place() -> None:
    with pytest.raises(UsageError, match=r"^sizes\[1\] = 0: expected a finite number"):
        Typed(sizes=(64, 0))


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("count", 1e6, 1_000_000),
        ("count", np.int64(3), 3),
        ("ratio", np.float32(0.5), 0.5),
        ("ratio", 2, 2.0),
        ("sizes", [64, 32.0], (64, 32)),
        ("limit", None, None),
    ],
)
def test_what_is_meant_is_kept_as_a_plain_value(name: str, value: Any, kept: Any) -> None:
    found = getattr(Typed(**{name: value}), name)
    assert (found, type(found)) == (kept, type(kept))


@pytest.mark.parametrize(
    ("cls", "name", "value"),
    [
        (PPOConfig, "lr", -1.0),
        (PPOConfig, "minibatch", 2.5),
        (PPOConfig, "optimizer", "adamm"),
        (DQNConfig, "double", "yes"),
        (DQNConfig, "epsilon", 1.5),
    ],
)
def test_an_agents_settings_from_python_are_checked(cls: Any, name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=f"^{name} = {value!r}: expected "):
        cls(**{name: value})


def test_a_variant_has_other_defaults_and_the_same_ranges() -> None:
    made = variant(Settings, "Careful", "How to be careful.", lr=0.1)
    assert (made().lr, made().gamma, made.__name__) == (0.1, 1.0, "Careful")
    assert issubclass(made, Settings)
    with pytest.raises(UsageError, match="lr = -1"):
        made(lr=-1.0)


def test_a_variant_is_refused_defaults_out_of_range() -> None:
    with pytest.raises(UsageError, match="gamma = 2"):
        variant(Settings, "Wrong", "", gamma=2.0)
